#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs Tests/SamplePackage, a package that depends on this one, and
looks at what such a package gets to see."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import counting
import dependents

ROOT = dependents.ROOT
SAMPLE = ROOT / "Tests/SamplePackage"

PRINTED = """\
wall: 20.5
desk: 20.5
wall: 21.0
gone
ended
gone
ended
"""


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        status, said = dependents.build(SAMPLE)
        if status != 0:
            raise AssertionError(said)

    def test_a_dependent_package_builds_and_runs(self):
        ran = subprocess.run(
            [dependents.BUILT / "Sample"], text=True, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((ran.returncode, ran.stdout), (0, PRINTED))

    def test_names_of_c_are_not_visible(self):
        headers = [ROOT / "include/callback_registry.h",
                   ROOT / "Sources/CPlatform/include/CPlatform.h"]
        names = {name for header in headers for name in re.findall(
            r"\b(cbr_\w+)\(", header.read_text())}
        self.assertGreater(len(names), 150)
        self.assertEqual(self.not_found("\n".join(
            f"let _ = {name}" for name in sorted(names))), names)

    def test_modules_below_are_not_shown(self):
        """What the engine is made of is not for others."""
        names = {"Handle", "Entering", "ThreadRecord", "sqlite3_open"}
        self.assertEqual(self.not_found("\n".join(
            f"let _ = {name}.self" for name in sorted(names))), names)
        self.assertEqual(self.not_found("let _ = Registry.self"), set())

    def not_found(self, code):
        """Returns what a file with that code does not find."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "main.swift"
            source.write_text(f"import CallbackRegistry\n{code}\n")
            checked = subprocess.run(
                ["swiftc", "-typecheck", "-swift-version", "6",
                 "-module-cache-path", dependents.BUILT / "ModuleCache",
                 "-I", dependents.BUILT / "Modules",
                 "-I", dependents.BUILT / "CPlatform.build",
                 "-I", ROOT / "Sources/CSQLite", source],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        errors = re.findall(r": error: (.*)", checked.stdout)
        found = re.findall(r"cannot find '(\w+)' in scope", checked.stdout)
        self.assertEqual(len(set(errors)), len(set(found)), checked.stdout)
        self.assertEqual(checked.returncode == 0, not errors, checked.stdout)
        return set(found)

    def test_no_unsafe_flags(self):
        """With them, a package cannot be depended on by its URL."""
        manifest = subprocess.run(
            ["swift", "package", "dump-package"], cwd=ROOT, check=True,
            stdout=subprocess.PIPE, text=True).stdout
        targets = json.loads(manifest)["targets"]
        kinds = {kind for target in targets for setting in target["settings"]
                 for kind in setting["kind"]}
        self.assertIn("define", kinds)
        self.assertNotIn("unsafeFlags", kinds)

    def test_needs_no_other_package(self):
        manifest = (ROOT / "Package.swift").read_text()
        self.assertNotIn(".package(", manifest)


if __name__ == "__main__":
    counting.run()
