"""A small GPT learns the letters of a text, and writes some more: python gpt.py [FILE [STEPS]]."""
import pathlib
import sys

import weber as wb

LENGTH, FEATURES = 64, 64


def model_of(letters: int) -> wb.Layer:
    block = lambda: wb.TransformerEncoder(FEATURES, heads=4, causal=True, norm_first=True, activation=wb.gelu)
    return wb.Chain(wb.Embedding(letters, FEATURES), wb.PositionEmbedding(LENGTH, FEATURES), block(), block(), wb.LayerNorm(FEATURES),
                    wb.Dense(FEATURES, letters))


def main() -> float:
    text = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else wb.__file__).read_text()
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    letters = sorted(set(text))
    numbers = wb.array([letters.index(c) for c in text], "int32")
    wb.seed(1)
    model = model_of(len(letters))
    optimiser = wb.setup(wb.AdamW(3e-3), model, clip_total_norm=1.0)

    def loss(m, x, y):
        return wb.logitcrossentropy(m(x), y)

    for step in range(steps):
        starts = (wb.uniform((32, 1)) * (len(text) - LENGTH - 1)).astype("int32")
        places = starts + wb.arange(LENGTH + 1).astype("int32")
        pieces = wb.take(numbers, places, 0)
        l = wb.train_step(loss, model, optimiser, pieces[:, :-1], pieces[:, 1:])
        if step % 50 == 0:
            print("step %3d  loss %.3f" % (step, l.item()))

    wb.key_value_cache(model, LENGTH)  # each letter is computed once
    written, letter = text[:1], numbers[:1]
    for _ in range(LENGTH - 1):
        logits = model(letter.reshape(1, 1))[0, -1]
        letter = wb.categorical(logits / 0.8, 0)
        written += letters[letter.item()]
    print(written)
    return l.item()


if __name__ == "__main__":
    main()
