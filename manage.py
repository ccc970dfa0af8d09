#!/usr/bin/env python
"""Interlock's command line. A user's mistake ends in one line on stderr and status 1."""

from __future__ import annotations

import os
import sys

# These make the data folder's secret key; everything else wants one to be there.
STARTERS = ("up", "demo")
# Building an index may take longer than any statement of a request should.
MIGRATING = ("migrate", "up", "demo")


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    command = arguments[1] if len(arguments) > 1 else "help"
    if command in MIGRATING:
        os.environ.setdefault("INTERLOCK_STATEMENT_TIMEOUT_MS", "0")
    try:
        from config.failures import told_in_one_line
    except ImportError as error:
        sys.exit(f"{error}: the environment is not complete; run `make up` or `make test` once")
    with told_in_one_line():
        from config.services import folder

        if command in STARTERS:
            folder.ensure_secret_key()
        elif command == "doctor":
            folder.lend_secret_key()
        from django.core.management import execute_from_command_line

        execute_from_command_line(arguments)


if __name__ == "__main__":
    main(sys.argv)
