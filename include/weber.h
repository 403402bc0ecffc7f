/* weber.h: everything a user needs. The headers below are the manual, each for its subject:
 *
 *     desc.h          settings by name, defaults        metrics.h       how good a model is
 *     array.h         arrays, scopes, views, reading    rules.h         rules of optimisers
 *     dtype.h         element types                     schedules.h     settings that change
 *     ops.h           operations                        optimise.h      optimisers, steps
 *     scan.h          loops over sequences              train.h         the training loop
 *     gradient.h      derivatives                       data.h          loaders, data sets
 *     model.h         models                            observations.h  folds, splits, samples
 *     class.h         layers of your own                csv.h           tables as text
 *     layers.h        the layers                        state.h         files
 *     sequences.h     embeddings, attention, recurrent  show.h          printing, progress, plots
 *     initialisers.h  initial values                    device.h        devices, memory, threads
 *     parameters.h    parameters as a vector or a tree  distributed.h   several processes
 *     watch.h         what layers give, by path         error.h         errors and the log
 *     losses.h        losses                            context.h       contexts of threads
 *     language.h      known models of language          text.h          texts into tokens
 *     vision.h        known models of images            images.h        pictures from files
 *     lora.h          adapters of low rank
 *
 * From C++ (17 or later): macros that take settings or lists, such as wb_dense and wb_chain, are
 * for C (those with settings work in C++20, too: weber/desc.h). Each of them calls a function whose
 * name ends in _make, which takes the struct with the settings, or a list's length and address. C++
 * calls that function:
 *
 *     wb_dense_desc wide{}, last{};
 *     wide.in = 2, wide.out = 8, wide.activation = wb_tanh;
 *     last.in = 8, last.out = 1;
 *     wb_layer *layers[] = {wb_dense_make(wide), wb_dense_make(last)};
 *     wb_layer *model = wb_chain_make(2, layers); */
#ifndef WEBER_H
#define WEBER_H

#include "weber/array.h"
#include "weber/class.h"
#include "weber/context.h"
#include "weber/csv.h"
#include "weber/data.h"
#include "weber/desc.h"
#include "weber/device.h"
#include "weber/distributed.h"
#include "weber/dtype.h"
#include "weber/error.h"
#include "weber/gradient.h"
#include "weber/images.h"
#include "weber/initialisers.h"
#include "weber/language.h"
#include "weber/layers.h"
#include "weber/lora.h"
#include "weber/losses.h"
#include "weber/metrics.h"
#include "weber/model.h"
#include "weber/observations.h"
#include "weber/ops.h"
#include "weber/optimise.h"
#include "weber/parameters.h"
#include "weber/scan.h"
#include "weber/schedules.h"
#include "weber/sequences.h"
#include "weber/show.h"
#include "weber/state.h"
#include "weber/text.h"
#include "weber/train.h"
#include "weber/vision.h"
#include "weber/watch.h"

#endif
