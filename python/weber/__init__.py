"""Weber: deep learning with arrays, gradients, layers, optimisers and one device story.

    import weber as wb

    model = wb.Chain(wb.Dense(784, 128, wb.relu), wb.Dense(128, 10))
    optimiser = wb.setup(wb.Adam(1e-3), model)
    for x, y in wb.DataLoader(images, labels, batchsize=64, shuffle=True):
        wb.train_step(lambda m, x, y: wb.logitcrossentropy(m(x), y), model, optimiser, x, y)

Shapes are NumPy's: the last axis is the fastest in memory. Weber's own sizes are the same numbers in reverse, so no memory is
turned: images are (N, C, H, W), sequences (N, time, features), as in PyTorch. Arrays do not change; they are computed when a number
is needed, or by eval().
"""
import sys

from . import _weber
from ._weber import *  # noqa: F401,F403
from ._types import *  # noqa: F401,F403
from ._arrays import *  # noqa: F401,F403
from ._standard import *  # noqa: F401,F403
from ._models import *  # noqa: F401,F403
from ._files import *  # noqa: F401,F403
from ._tools import *  # noqa: F401,F403
from ._derivatives import *  # noqa: F401,F403
from ._notebook import *  # noqa: F401,F403
from ._weber import max, min, sum, any, all, abs  # noqa: F401,A004  (after the stars: these names are Python's, too)
from . import _examples, _hints, _words

_weber._set_translator(_words.message)

for _name, _text in _examples.EXAMPLES.items():  # those of functions in C are there already
    if not (vars()[_name].__doc__ or "").endswith(_text):
        vars()[_name].__doc__ = "%s\n\n%s" % (vars()[_name].__doc__, _text)

__version__ = _weber.__version__


def __getattr__(name: str) -> object:
    return _hints.hint(_hints.MODULE, "weber")(sys.modules[__name__], name)
