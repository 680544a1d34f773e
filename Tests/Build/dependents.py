# SPDX-License-Identifier: Apache-2.0
"""Builds packages that depend on this one, where this one has been built: then
nothing of it is compiled again."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / ".build"
BUILT = SCRATCH / "debug"


def build(package):
    """Builds the package in that folder; returns its status and what was
    said."""
    # SwiftPM goes by the plan that it finds, whosever that is.
    plan = SCRATCH / "debug.yaml"
    plan.unlink(missing_ok=True)
    try:
        result = subprocess.run(
            ["swift", "build", "--package-path", package, "--scratch-path",
             SCRATCH], cwd=ROOT, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    finally:
        plan.unlink(missing_ok=True)
    return result.returncode, result.stdout
