"""Write the rule cases into the package."""

from pathlib import Path

from dcem.tasks.sepsis import artificial
from sepsis_rules import invent_rules, packed

if __name__ == "__main__":
    target = Path(artificial.__file__).with_name(artificial.RULE_CASES)
    target.write_bytes(packed(invent_rules()))
    print(f"wrote {target.name}: {target.stat().st_size} bytes")
