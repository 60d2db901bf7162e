"""doctor asks a real Airflow about its components and pools."""

from __future__ import annotations

from support.running_site import Site

from nightmill.cli.doctor import examine_airflow


def test_a_healthy_airflow_passes_every_check_of_a_command_on_the_stack(site: Site) -> None:
    findings = {one.check: (one.status.value, one.seen) for one in examine_airflow(site.running.command_env())}
    assert {check: status for check, (status, _) in findings.items()} == {
        "airflow: metadatabase": "ok",
        "airflow: scheduler": "ok",
        "airflow: dag_processor": "ok",
        "airflow: triggerer": "ok",
        "airflow: pool nightmill_batch": "ok",
        "airflow: pool nightmill_online": "ok",
        "airflow: import errors": "ok",
    }, findings
