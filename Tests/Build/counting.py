# SPDX-License-Identifier: Apache-2.0
"""Runs a module's tests and ends with the line that `part` counts."""

import unittest


def run(**options):
    """Runs the tests of the program; its status says whether all passed."""
    result = unittest.main(exit=False, **options).result
    # A subtest that fails is one of its test's several failures.
    failed = min(len(result.failures) + len(result.errors), result.testsRun)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    raise SystemExit(not result.wasSuccessful())
