"""What notebooks show: models as boxes, training as a bar with curves."""
import functools
import html
import sys
import time
from typing import TYPE_CHECKING, Any, Optional

from . import _weber
from ._weber import Layer

_BOX = "border:1px solid #8888;border-radius:4px;padding:2px 8px;margin:3px;display:inline-block;text-align:center"
_FAINT = "opacity:.6;font-size:85%"


def _boxes(path: str, layers: dict[str, Layer]) -> str:
    layer = layers[path]
    inner = [p for p in layers if p and p != path and max((q for q in layers if p.startswith(q + ".") or not q), key=len) == path]
    name = layer.type if inner else repr(layer).split("\n")[0].split("  #")[0].strip()
    count = _weber.parameter_count(layer)
    text = html.escape(name) + (" <span style='%s'>%s</span>" % (_FAINT, format(count, ",")) if count else "")
    if not inner:
        return "<div style='%s'>%s</div>" % (_BOX, text)
    parts, follow_each_other = [], layer.type == "Chain"
    for p in inner:
        label = p[len(path) + 1 if path else 0:].removeprefix("layers.")
        label = "" if label.isdigit() or label == "layers" else "<div style='%s'>%s</div>" % (_FAINT, html.escape(label))
        parts.append("<div style='display:inline-block'>%s%s</div>" % (label, _boxes(p, layers)))
    between = "<div style='line-height:1'>&darr;</div>" if follow_each_other else ""
    return "<div style='%s'><div>%s</div>%s</div>" % (_BOX, text, between.join(parts))


def _model_html(model: Layer) -> str:
    """Nested boxes with the numbers of parameters; the layers of a Chain follow each other downwards."""
    return "<div style='text-align:left'>%s</div>" % _boxes("", model.modules())


Layer._repr_html_ = _model_html  # type: ignore[attr-defined]


# ---- training ----

def _curves(lines: dict[str, list[float]], width: int = 480, height: int = 150) -> str:
    """Curves over the epochs as SVG."""
    numbers = [y for line in lines.values() for y in line if y == y and abs(y) != float("inf")]
    longest = max(map(len, lines.values()), default=0)
    if longest < 2 or not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    high += (high == low)
    left, top, colors, parts = 60, 12, ("#4878cf", "#d65f5f"), []
    for y, value in ((top, high), (height - 20, low)):
        parts.append("<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='#8884'/><text x='%d' y='%d' text-anchor='end'>%.4g</text>" % (left, y, width - 10, y, left - 6, y + 4, value))
    for i, (name, line) in enumerate(lines.items()):
        points = ["%.1f,%.1f" % (left + k * (width - 10 - left) / (longest - 1), height - 20 - (y - low) / (high - low) * (height - 20 - top))
                  for k, y in enumerate(line) if y == y and abs(y) != float("inf")]
        parts.append("<polyline points='%s' fill='none' stroke='%s' stroke-width='1.5'/>" % (" ".join(points), colors[i]))
        parts.append("<text x='%d' y='%d' fill='%s'>%s</text>" % (left + 10 + 120 * i, height - 4, colors[i], name))
    parts.append("<text x='%d' y='%d' text-anchor='end'>epoch %d</text>" % (width - 10, height - 4, longest))
    return "<svg width='%d' height='%d' font-size='11' font-family='sans-serif' fill='currentColor'>%s</svg>" % (width, height, "".join(parts))


class _Board:
    """A bar and curves that are drawn anew while a training runs."""

    def __init__(self, epochs: int, steps: int) -> None:
        self.epochs, self.steps, self.step, self.drawn, self.begun = epochs, steps, 0, 0.0, time.monotonic()
        self.lines: dict[str, list[float]] = {"loss": []}
        self.note, self.handle, self.has_ended = "", None, False

    def _repr_html_(self) -> str:
        whole, seconds = max(1, self.epochs * self.steps), time.monotonic() - self.begun
        done = len(self.lines["loss"])
        at = "%d of %d epochs" % (done, self.epochs) if self.has_ended else "epoch %d of %d" % (min(self.epochs, done + 1), self.epochs)
        note = "%s, %d s%s" % (at, seconds, self.note)
        return "<div><progress value='%d' max='%d' style='width:300px;vertical-align:middle'></progress> %s</div>%s" % (self.step, whole, note, _curves(self.lines))

    def __repr__(self) -> str:
        return "%d of %d epochs%s" % (len(self.lines["loss"]), self.epochs, self.note)

    def draw(self, at_once: bool = True) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        if self.handle is None:
            self.handle = display(self, display_id=True)
        elif at_once or time.monotonic() - self.drawn > 0.2:
            self.handle.update(self)
        else:
            return
        self.drawn = time.monotonic()

    def on_step(self, event: Any) -> None:
        self.step += 1
        self.draw(False)

    def on_epoch(self, event: Any) -> None:
        self.lines["loss"].append(event.mean_loss)
        self.step = len(self.lines["loss"]) * self.steps
        self.note = ", loss %.4g" % event.mean_loss
        if event.validation is not None and event.validation["loss"] is not None:
            self.lines.setdefault("validation", []).append(event.validation["loss"])
            self.note += ", validation %.4g" % event.validation["loss"]
        self.draw()


def _both(first: Any, second: Any) -> Any:
    def f(event: Any) -> Any:
        first(event)
        return second(event) if second is not None else None

    return f


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell: Optional[Any] = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")


if TYPE_CHECKING:
    from ._weber import train
else:
    @functools.wraps(_weber.train)
    def train(*args, **named):
        if not named.get("progress") or not _in_notebook():
            return _weber.train(*args, **named)
        board = _Board(named.get("epochs", 1), len(args[2] if len(args) > 2 else named["data"]))
        named.update(progress=False, on_epoch=_both(board.on_epoch, named.get("on_epoch")))
        if not named.get("throttle"):  # which is for the user's on_step
            named["on_step"] = _both(board.on_step, named.get("on_step"))
        try:
            return _weber.train(*args, **named)
        finally:
            board.has_ended = True
            board.draw()


__all__ = ["train"]
