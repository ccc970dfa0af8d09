"""`make faults`: break the runtime in every way there is, and say what came of it.

Without arguments both tiers run. `--mutants` gives the core one defect after the other and says which case noticed it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"


def main() -> int:
    """Run what was asked for; 0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--tier", choices=["fast", "slow", "all"], default="all")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="all of them, or these")
    parser.add_argument("--seed", type=int, default=1, help="which cases, which schedule (1)")
    parser.add_argument("--everything", action="store_true", help="no sampling: hours, not minutes")
    parser.add_argument("--only", default="", help="cases whose section or label holds this text")
    parser.add_argument("--seconds", type=int, default=120, help="how long the slow tier goes on")
    asked = parser.parse_args()

    from tests.faults.stage import stage

    with stage() as services:
        from tests.conftest import environment
        from tests.faults import fast, mutants, slow
        from tests.runtime.world import make_world
        from tests.runtime.zygote import Zygote

        heard = None if asked.only else subprocess.DEVNULL
        zygote = Zygote(environment(), heard)
        try:
            if asked.mutants is not None:
                names = asked.mutants or mutants.MUTANTS
                return fast.all_mutants(make_world(), zygote, asked.seed, names, asked.only)
            failed = 0
            if asked.tier in ("fast", "all"):
                failed += fast.matrix(
                    make_world(), zygote, asked.seed, everything=asked.everything, only=asked.only
                )
            if asked.tier in ("slow", "all") and not asked.only:
                env = {**environment(), "INTERLOCK_TEST_LIMITS": json.dumps(slow.SHORT)}
                failed += slow.run(services, make_world(), env, asked.seed, asked.seconds)
            return min(failed, 100)
        finally:
            zygote.close()


if __name__ == "__main__":
    sys.exit(main())
