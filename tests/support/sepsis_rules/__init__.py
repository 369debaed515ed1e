"""The rule cases of the sepsis cohort: one invented patient for each side of each rule.

They are written here, patient by patient, and shipped with the package as data, for anybody who
wants to test a build of the cohort (`dcem sepsis artificial`). After a change run

    PYTHONPATH=tests/support python -m sepsis_rules
"""

import gzip
import json

from sepsis_rules.cases import invent_rules
from sepsis_rules.world import World

__all__ = ["World", "invent_rules", "packed"]


def packed(world: World) -> bytes:
    """The cases as the package ships them."""
    content = {"tables": world.rows, "expected": world.expected}
    return gzip.compress(json.dumps(content).encode(), mtime=0)
