#!/usr/bin/env python
"""Interlock's command line. A user's mistake ends in one line on stderr and status 1."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if "migrate" in arguments[1:2]:
        # Building an index may take longer than any statement of a request should.
        os.environ.setdefault("INTERLOCK_STATEMENT_TIMEOUT_MS", "0")
    from django.core.management import execute_from_command_line

    execute_from_command_line(arguments)


if __name__ == "__main__":
    main(sys.argv)
