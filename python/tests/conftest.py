"""Every test leaves nothing behind: as many arrays, buffers and objects as before it."""
import gc

import pytest

import weber as wb


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    wb.eval()
    before = wb.live()
    yield
    gc.collect()
    wb.eval()  # what finalisers have put off is released in the next call
    after = wb.live()
    assert after["arrays"] <= before["arrays"] + 64, (before, after)  # interned numbers stay
    assert after["objects"] <= before["objects"] + 2, (before, after)
