/* What ranks compare of their loaders. */
#include <stdio.h>

#include "data/loader.h"
#include "ranks/facts.h"

static void add(wb_text *facts, const char *what, const char *loader, const char *value) {
    char name[96];
    (void)snprintf(name, sizeof name, "%s of %s", what, loader);
    wb_fact_add(facts, name, value);
}

static void add_number(wb_text *facts, const char *what, const char *loader, uint64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    add(facts, what, loader, text);
}

/* Ranks that share one order must have the same settings; those with data of their own must have
 * the same number of batches. */
void wb_loader_tell(const wb_loader *l, const char *name, wb_text *facts) {
    add(facts, ".shard", name, l->desc.shard ? "true" : "false");
    if (!l->desc.shard) {
        add_number(facts, "the number of batches", name, (uint64_t)l->length);
        return;
    }
    add_number(facts, "the number of observations", name, (uint64_t)l->observations);
    add_number(facts, ".batchsize", name, (uint64_t)l->desc.batchsize);
    add_number(facts, ".seed", name, l->desc.seed);
    add(facts, ".shuffle", name, l->desc.shuffle ? "true" : "false");
    add(facts, ".drop_partial", name, l->desc.drop_partial ? "true" : "false");
}
