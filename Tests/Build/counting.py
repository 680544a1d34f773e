# SPDX-License-Identifier: Apache-2.0
"""Runs a module's tests and ends with the line that `part` counts."""

import concurrent.futures
import os
import sys
import time
import unittest


def run(**options):
    """Runs the tests of the program; its status says whether all passed."""
    result = unittest.main(exit=False, **options).result
    # A subtest that fails is one of its test's several failures.
    failed = min(len(result.failures) + len(result.errors), result.testsRun)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    raise SystemExit(not result.wasSuccessful())


def run_together():
    """Does so with as many tests at once as there are cores. They wait for
    programs, have no setUpClass, and share nothing."""
    program = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    suites = (loader.loadTestsFromNames(sys.argv[1:], program)
              if sys.argv[1:] else loader.loadTestsFromModule(program))
    tests = list(each(suites))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = sum(pool.map(fails, tests))
    print(f"{len(tests) - failed} passed, {failed} failed")
    raise SystemExit(failed > 0)


def each(suite):
    """Returns the tests of a suite one by one."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from each(part)
        else:
            yield part


def fails(test):
    """Runs a test, says in one piece what became of it, and returns whether it
    failed."""
    begun = time.monotonic()
    result = test.run()
    wrong = [text for _, text in result.failures + result.errors]
    wrong += ["it was expected to fail"] * len(result.unexpectedSuccesses)
    said = "FAILED" if wrong else "skipped" if result.skipped else "ok"
    print("\n".join([f"{said} {test} {time.monotonic() - begun:.1f} s", *wrong]),
          flush=True)
    return bool(wrong)
