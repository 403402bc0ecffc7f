/* weber.h: everything a user needs. The parts are the manual, each for its room:
 *
 *     array.h     arrays, scopes, views, reading          layers.h    layers and models
 *     ops.h       operations                              losses.h    losses
 *     gradient.h  derivatives                             optimise.h  optimisers, training
 *     device.h    devices, memory, threads                data.h      loaders, data sets
 *     error.h     errors and the log                      show.h      printing, progress, plots
 *     state.h     files */
#ifndef WEBER_H
#define WEBER_H

#include "weber/array.h"
#include "weber/data.h"
#include "weber/device.h"
#include "weber/dtype.h"
#include "weber/error.h"
#include "weber/gradient.h"
#include "weber/layers.h"
#include "weber/losses.h"
#include "weber/ops.h"
#include "weber/optimise.h"
#include "weber/show.h"
#include "weber/state.h"

#endif
