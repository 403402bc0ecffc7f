"""Estimators of scikit-learn: WeberClassifier and WeberRegressor, networks of Dense layers. Needs scikit-learn 1.6 or later.

    from weber.sklearn import WeberClassifier
    cross_val_score(make_pipeline(StandardScaler(), WeberClassifier(hidden=(64, 64))), X, y)
"""
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import weber as wb


class _Estimator(BaseEstimator):
    """The common part of both estimators: a model, trained by AdamW on shuffled batches.

    hidden: sizes of the hidden layers. eta: the initial learning rate, which decreases to 0 along a cosine. weight_decay: AdamW's lambda.
    random_state: a seed, a RandomState, or None for a different network at each fit.
    """

    def __init__(self, hidden: Any = (64,), *, epochs: int = 100, batchsize: int = 32, eta: float = 1e-2, weight_decay: float = 0.0,
                 random_state: Any = None) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.batchsize = batchsize
        self.eta = eta
        self.weight_decay = weight_decay
        self.random_state = random_state

    def _train(self, X: Any, y: Any, outputs: int, loss: Any) -> None:
        seed = int(np.random.SeedSequence(self.random_state).generate_state(1)[0] if self.random_state is None or isinstance(self.random_state, (int, np.integer))
                   else self.random_state.randint(2 ** 31))
        wb.seed(seed)
        sizes = [X.shape[1], *self.hidden]
        self.mean_, scale = X.mean(0), X.std(0)
        self.scale_ = np.where(scale > 0, scale, 1)
        model = wb.Chain(*[wb.Dense(a, b, wb.relu) for a, b in zip(sizes, sizes[1:])], wb.Dense(sizes[-1], outputs))
        optimiser = wb.setup(wb.AdamW(self.eta, lambda_=self.weight_decay), model)
        data = wb.DataLoader(self._scaled(X).astype("float32"), y, batchsize=min(self.batchsize, len(X)), shuffle=True, seed=seed)
        rate = wb.schedule_cosine(first=self.eta, last=0.0, period=2 * self.epochs * len(data), halves=False)
        wb.train(loss, model, data, optimiser, epochs=self.epochs, schedules={"eta": rate})
        self.model_ = wb.model_as(model, "float64")  # answers do not depend on what else is asked at once

    def _scaled(self, X: Any) -> wb.Array:
        return wb.array((X - self.mean_) / self.scale_)

    def _outputs(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.model_(self._scaled(X))


class WeberClassifier(ClassifierMixin, _Estimator):
    __doc__ = "A classifier. " + (_Estimator.__doc__ or "")

    def fit(self, X: Any, y: Any) -> "WeberClassifier":
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("WeberClassifier needs at least two classes, got 1 class")
        self._train(X, labels.astype(np.int32), len(self.classes_), lambda m, x, y: wb.logitcrossentropy(m(x), y))
        return self

    def predict_proba(self, X: Any) -> Any:
        return wb.softmax(self._outputs(X)).numpy()

    def predict(self, X: Any) -> Any:
        labels = self._outputs(X).argmax(axis=1).numpy()
        return self.classes_[labels]


class WeberRegressor(RegressorMixin, _Estimator):
    __doc__ = "A regression of one or several targets. " + (_Estimator.__doc__ or "")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "WeberRegressor":
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        targets = y.reshape(len(y), -1)
        self.one_ = y.ndim == 1
        self.target_mean_, scale = targets.mean(0), targets.std(0)
        self.target_scale_ = np.where(scale > 0, scale, 1)
        scaled = ((targets - self.target_mean_) / self.target_scale_).astype(np.float32)
        self._train(X, scaled, targets.shape[1], lambda m, x, y: wb.mse(m(x), y))
        return self

    def predict(self, X: Any) -> Any:
        y = self._outputs(X).numpy() * self.target_scale_ + self.target_mean_
        return y[:, 0] if self.one_ else y
