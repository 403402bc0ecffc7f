"""scikit-learn's own checks of estimators."""
import warnings

import pytest

pytest.importorskip("sklearn", minversion="1.6")
from sklearn.datasets import load_diabetes, load_digits  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from weber.sklearn import WeberClassifier, WeberRegressor  # noqa: E402


@pytest.mark.parametrize("estimator", [WeberClassifier(random_state=0), WeberRegressor(random_state=0)], ids=lambda e: type(e).__name__)
def test_checks(estimator):
    failed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one, check in estimator_checks_generator(estimator):
            try:
                check(one)
            except pytest.skip.Exception:
                pass
            except Exception as error:
                if "SkipTest" not in type(error).__name__:
                    failed.append("%s: %r" % (getattr(check, "func", check).__name__, error))
    assert not failed, "\n".join(failed)


def test_they_learn():
    X, y = load_digits(return_X_y=True)
    assert cross_val_score(WeberClassifier(epochs=20, random_state=0), X, y, cv=3).mean() > 0.9
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(WeberRegressor((16,), epochs=30, eta=3e-3, weight_decay=0.1, random_state=0), X, y, cv=3).mean() > 0.3
