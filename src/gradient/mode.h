/* The thread's training flag, which layers in automatic mode follow. */
#ifndef WB_GRADIENT_MODE_H
#define WB_GRADIENT_MODE_H

#include <stdbool.h>

/* True inside wb_withgradient and wb_train, and after wb_training(true). */
bool wb_is_training(void);
/* Sets it; returns what it was. */
bool wb_set_training(bool training);

/* True while only the sizes of a model's results are wanted. */
bool wb_is_sizing(void);

#endif
