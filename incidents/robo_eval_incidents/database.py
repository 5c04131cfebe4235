"""What an incident log is as a database: its tables, and what its errors are called."""

from __future__ import annotations

from typing import Final

from robo_eval.log.sql import DatabaseError, Form
from robo_eval_incidents.schema import METADATA, VERSION

IncidentLogError = DatabaseError
"""An incident log cannot be read or written; nothing was changed."""

FORM: Final = Form(
    noun="incident log",
    tables=METADATA,
    main="records",
    version=VERSION,
    made_by="robo-eval incidents init",
    lock=7_302_411,
)
"""What opens a database as an incident log."""
