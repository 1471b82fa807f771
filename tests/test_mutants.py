"""The list of mutants fits the code: a line that was changed must be changed in the list too."""

from scripts.mutants import ROOT, read_mutants


def test_every_mutant_is_of_a_line_that_exists_once_and_of_tests_that_exist() -> None:
    for mutant in read_mutants():
        assert (ROOT / mutant.file).read_text().count(mutant.before) == 1, mutant
        assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests), mutant
