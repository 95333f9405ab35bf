"""The steps of CI that look at what we did not write: their exit codes and words."""

import json
import os
import subprocess
from pathlib import Path

from tests.cases import each
from tests.program.program import PROJECT

FOUND = {"id": "CVE-2027-1", "fix_versions": ["9.9"], "aliases": [], "description": ""}


def locked() -> list[str]:
    lines = (PROJECT / "requirements.lock").read_text("utf-8").splitlines()
    return [line.split("==")[0] for line in lines if line[:1].isalpha()]


def audit(folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """Run the step with a `pip-audit` that prints this."""
    program = folder / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\necho 'the service is away' >&2\n")
    program.chmod(0o700)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(
        [PROJECT / ".ci" / "audit"], env=environment, capture_output=True, text=True, check=False
    )


def looked_up(**special: object) -> str:
    return json.dumps(
        {"dependencies": [{"name": name, "version": "1", "vulns": [], **special} for name in locked()]}
    )


def test_an_audit_that_was_not_made_never_passes(tmp_path: Path) -> None:
    number = len(locked())
    assert number > 20
    one_missing = json.loads(looked_up())
    del one_missing["dependencies"][0]["vulns"]
    one_missing["dependencies"][0]["skip_reason"] = "unknown"
    found_and_missing = json.loads(json.dumps(one_missing))
    found_and_missing["dependencies"][1]["vulns"] = [FOUND]

    @each(
        "answer, code, words",
        [
            (looked_up(), 0, f"No known vulnerability in {number} packages"),
            (looked_up(vulns=[FOUND]), 1, "CVE-2027-1, mended in 9.9"),
            (json.dumps(found_and_missing), 1, "CVE-2027-1, mended in 9.9"),
            (json.dumps(one_missing), 77, f"AUDIT NOT DONE: 1 of {number} packages could not be looked up"),
            ("", 77, f"AUDIT NOT DONE: {number} of {number} packages could not be looked up"),
        ],
    )
    def walk(answer: str, code: int, words: str) -> None:
        done = audit(tmp_path, answer)
        assert done.returncode == code, done
        assert words in done.stdout

    walk()


def test_every_locked_file_has_its_hash() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (PROJECT / name).read_text("utf-8")
        entries = [entry for entry in text.split("\n\n")[-1].split("\n") if entry[:1].isalpha()]
        assert entries
        assert all(entry.rstrip().endswith("\\") for entry in entries), "pip takes none of the others then"
        assert "://" not in text, "a lock names no place to fetch from"
