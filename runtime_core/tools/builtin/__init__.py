"""The tools that come with the runtime: files and commands of the run's workspace, and a question
to a person.
"""

from __future__ import annotations
