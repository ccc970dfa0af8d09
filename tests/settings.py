"""The product's settings over a throw-away data folder, which tests/conftest.py starts and ends."""

from __future__ import annotations

import json
import os
import tempfile

# Named before the settings read it, and inherited by every process that a test starts.
# A parallel run's workers each own one: their processes inherit the pair, so it is made once a worker.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if os.environ.get("INTERLOCK_TEST_DATA_OWNER") != _worker or (
    "INTERLOCK_TEST_DATA_DIR" not in os.environ
):
    os.environ["INTERLOCK_TEST_DATA_DIR"] = tempfile.mkdtemp(prefix="interlock-test-", dir="/tmp")
    os.environ["INTERLOCK_TEST_DATA_OWNER"] = _worker
os.environ["INTERLOCK_DATA_DIR"] = os.environ["INTERLOCK_TEST_DATA_DIR"]
os.environ.setdefault(
    "SECRET_KEY", "only-for-tests-and-long-enough-for-the-deploy-checks-0123456789"
)
os.environ.setdefault("LOG_FORMAT", "console")

from config.settings import *  # noqa: F403

TOOL_MODULES = [*TOOL_MODULES, "tests.runtime.tools", "tests.runtime.graphs"]  # noqa: F405
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
# Hashing is made slow on purpose; hundreds of test users need not wait for it.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A test that waits for a lease to end sets a short one for the processes that it starts.
INTERLOCK_LIMITS = json.loads(os.environ.get("INTERLOCK_TEST_LIMITS", "{}"))
# A test holds its transaction open while it thinks, on a machine that may be busy.
DATABASES["default"]["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=60000"  # noqa: F405
