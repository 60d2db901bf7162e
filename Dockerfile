# nightmill on the official Airflow image. The image's Airflow and the one in requirements.txt must be the same version.
#   docker build -t nightmill .
# Run each Airflow component from this image; docs/guides/operations.md has the connections and pools.
FROM apache/airflow:3.3.2-python3.12

# The image's own user, never root: pip refuses root here, and the processes need no more rights.
USER airflow
COPY --chown=airflow:0 requirements.txt LICENSE /opt/airflow/
RUN pip install --no-cache-dir --require-hashes --no-deps -r /opt/airflow/requirements.txt

# Libraries that the triggerer and the workers import outside the DAG bundle live in include/.
# .dockerignore leaves the demo jobs out, the local stack and the practice provider that only they use.
COPY --chown=airflow:0 include /opt/airflow/include
COPY --chown=airflow:0 dags /opt/airflow/dags
# For the API server: the pages of tasks, cancelling by a click, and who may cancel or replay.
COPY --chown=airflow:0 plugins /opt/airflow/plugins

ENV PYTHONPATH=/opt/airflow/include \
    AIRFLOW__CORE__LOAD_EXAMPLES=false \
    GX_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1 \
    SCARF_ANALYTICS=false
