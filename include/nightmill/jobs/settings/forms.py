"""The forms that text of job.yaml and checks.yaml must have, and how a message says each."""

from __future__ import annotations

IDENTIFIER = r"^[a-z][a-z0-9_]{0,47}$"
CONNECTION_ID = r"^[A-Za-z0-9_.-]{1,200}$"
EXPECTATION = r"^Expect[A-Za-z]+$"
DURATION = r"^[0-9]+[A-Za-z]+$"
FILL = r"^(rerun|never|person by ([01][0-9]|2[0-3]):[0-5][0-9])$"

SAID = {
    IDENTIFIER: "lower-case letters (a to z), digits and _, a letter first, at most 48 characters",
    CONNECTION_ID: "a connection's id of letters, digits and _ . -, at most 200 characters",
    EXPECTATION: "a class name that starts with Expect and has letters only",
    DURATION: "a number with its unit, such as 24h",
    FILL: "rerun, never, or a person and a time in UTC such as `person by 17:00`",
}
