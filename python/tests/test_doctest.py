"""The examples of docstrings, and that docstrings have them."""
import doctest

import pytest

import weber as wb
from weber._examples import EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name] + "\n", {"wb": wb}, name, None, 0)
    said = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    test.globs.clear()
    assert result.attempted and not result.failed, "".join(said)
    assert getattr(wb, name).__doc__.endswith("\n\n" + EXAMPLES[name])
