/* The derivative of a scan: a scan in the other direction (Bradbury and others, JAX).
 *
 * The pullback of the body is walked once. What it reads of the forward body is kept for each step
 * as a further output of the forward scan, unless it is a view or elementwise result of a value
 * that is kept anyway: then it is computed again. A forward scan that has been computed already is
 * run again, with those outputs.
 *
 * The cotangent of a captured array is a sum over the steps. If a step's term is a product or a
 * sum, the factors of all steps are joined, and one product after the loop gives the sum; else a
 * carry adds up the terms. */
#include "array/view.h"
#include "base/memory.h"
#include "gradient/walk.h"
#include "ops/build.h"
#include "ops/trace.h"

/* ---- lists of nodes, each after its inputs ---- */

enum { NEEDED = 1, STORED = 2 }; /* marks of forward nodes */

typedef struct visit {
    wb_array *node;
    int32_t next;
} visit;

typedef struct node_list {
    wb_table table; /* by address */
    wb_array **nodes;
    uint8_t *marks;
    int64_t capacity, mark_capacity;
    visit *stack;
    int64_t stack_capacity;
} node_list;

static int64_t place_in(const node_list *list, const wb_array *x) {
    return wb_table_find(&list->table, (uint64_t)(uintptr_t)x);
}

static bool append(node_list *list, wb_array *x) {
    const int64_t place = list->table.count;
    if (!WB_GROW(list->nodes, place, list->capacity) ||
        !WB_GROW(list->marks, place, list->mark_capacity) ||
        !wb_table_add(&list->table, (uint64_t)(uintptr_t)x))
        return false;
    list->nodes[place] = x, list->marks[place] = 0;
    return true;
}

/* True if x is in `before`, or is a result of an operation that is; then x is marked as needed.
 * *failed: out of memory. */
static bool is_needed_of(node_list *before, wb_array *x, bool *failed) {
    if (!before) return false;
    int64_t place = place_in(before, x);
    const bool is_result =
        place < 0 && x->op == WB_OP_result && place_in(before, x->inputs[0]) >= 0;
    if (is_result && !append(before, x)) return *failed = true;
    if (is_result) place = before->table.count - 1;
    if (place >= 0) before->marks[place] |= NEEDED;
    return place >= 0;
}

/* Appends the nodes that root depends on, up to those in `before` (may be NULL), which are
 * marked. */
static bool append_all(node_list *list, wb_array *root, node_list *before) {
    int64_t depth = 0;
    bool failed = false;
    if (place_in(list, root) >= 0 || is_needed_of(before, root, &failed)) return !failed;
    if (!WB_GROW(list->stack, depth, list->stack_capacity)) return false;
    list->stack[depth++] = (visit){root, 0};
    while (depth > 0) {
        visit *top = &list->stack[depth - 1];
        if (top->next == top->node->ninputs) {
            if (place_in(list, top->node) < 0 && !append(list, top->node)) return false;
            depth--;
            continue;
        }
        wb_array *input = top->node->inputs[top->next++];
        if (place_in(list, input) >= 0 || is_needed_of(before, input, &failed)) {
            if (failed) return false;
            continue;
        }
        if (!WB_GROW(list->stack, depth, list->stack_capacity)) return false;
        list->stack[depth++] = (visit){input, 0};
    }
    return true;
}

static void list_end(node_list *list) {
    wb_table_release(&list->table);
    wb_release(list->nodes);
    wb_release(list->marks);
    wb_release(list->stack);
}

/* ---- the work ---- */

enum { MOST_VIEWS = 4 };

/* A factor that is put side by side for all steps: something forward, or an output of the backward
 * scan. */
typedef struct factor {
    wb_array *forward; /* NULL: an output */
    int32_t output;
} factor;

/* A share of a captured array's cotangent that is computed after the loop. */
typedef struct share {
    int32_t input;               /* of the scan */
    wb_array *of;                /* the node of one step: a product or a sum */
    wb_array *views[MOST_VIEWS]; /* what is done to it, outermost first */
    int nviews;
    factor factors[2];
} share;

typedef struct pull {
    wb_array *scan;   /* the node that is differentiated */
    wb_array *source; /* that, or one like it, with what is kept for each step */
    wb_body *body;
    int64_t steps;
    bool reverse;
    wb_array *const *cotangents; /* of the scan's results */
    const bool *want;
    wb_trace trace;
    node_list forward, backward;
    wb_array **gradients; /* of the body's placeholders, in one step */
    wb_array **results;   /* of the backward body: carries, then outputs */
    int64_t nresults, result_capacity, ncarries;
    wb_array **outputs; /* of the backward body, until its carries are known */
    int64_t noutputs, output_capacity;
    share *shares;
    int64_t nshares, share_capacity;
    int32_t *result_of; /* of each input of the scan: the output, or ~ the carry, that has its
                           cotangent; NOT_THERE */
} pull;

enum { NOT_THERE = INT32_MAX };

static bool is_float(const wb_array *x) { return wb_dtype_is_float((wb_dtype)x->dtype); }
static int32_t first_captured(const wb_body *b) { return b->ncarries + b->nslices; }

static bool add_result(pull *p, wb_array *x) {
    if (!x || !WB_GROW(p->results, p->nresults, p->result_capacity)) return false;
    p->results[p->nresults++] = x;
    return true;
}

/* The number of the output that holds x for each step; -1: out of memory. */
static int32_t add_output(pull *p, wb_array *x) {
    for (int64_t i = 0; i < p->noutputs; i++)
        if (p->outputs[i] == x) return (int32_t)i;
    if (!WB_GROW(p->outputs, p->noutputs, p->output_capacity)) return -1;
    p->outputs[p->noutputs] = x;
    return (int32_t)p->noutputs++;
}

/* ---- one step backwards ---- */

static wb_array *zeros_like(const wb_array *x, wb_dtype dtype) {
    return wb_full_make(dtype, 0, x->ndim, x->sizes);
}

/* A placeholder for the cotangent of result r; NULL: there is none, or an error is recorded. */
static wb_array *cotangent_of(pull *p, int32_t r) {
    wb_array *g = p->cotangents[r];
    const wb_array *result = p->body->results[r];
    if (r >= p->body->ncarries) return g ? wb_trace_given(&p->trace, WB_GIVEN_SLICE, g) : NULL;
    if (!is_float(result)) return NULL;
    wb_trace_step_out();
    if (!g) g = zeros_like(result, (wb_dtype)result->dtype);
    wb_trace_step_in();
    return g ? wb_trace_given(&p->trace, WB_GIVEN_CARRY, g) : NULL;
}

static bool is_wanted(const pull *p, int32_t input) {
    const bool is_carry = input < p->body->ncarries;
    return is_float(p->body->given[input]) && (is_carry || p->want[input]);
}

static bool walk_step(pull *p) {
    const wb_body *b = p->body;
    const int32_t ngiven = wb_body_given(b);
    wb_array **g = wb_alloc((size_t)(b->nresults + 1) * sizeof *g);
    wb_array **wanted = wb_alloc((size_t)(2 * ngiven + 1) * sizeof *wanted);
    p->gradients = wb_alloc((size_t)(ngiven + 1) * sizeof *p->gradients);
    bool done = g && wanted && p->gradients;
    for (int32_t r = 0; done && r < b->nresults; r++) {
        g[r] = cotangent_of(p, r);
        done = !wb_failed();
    }
    int count = 0;
    for (int32_t i = 0; done && i < ngiven; i++)
        if (is_wanted(p, i)) wanted[count++] = b->given[i];
    wb_array **found = wanted ? wanted + ngiven : NULL;
    done = done && wb_walk_inside(b->nresults, b->results, g, count, wanted, found) == WB_OK;
    for (int32_t i = 0, k = 0; done && i < ngiven; i++)
        if (is_wanted(p, i)) p->gradients[i] = found[k++];
    wb_release(g);
    wb_release(wanted);
    return done;
}

/* ---- sums over the steps, after the loop ---- */

/* Notes x as a factor; false: x is the same in every step, or out of memory. */
static bool as_factor(pull *p, wb_array *x, factor *f) {
    const int64_t place = place_in(&p->forward, x);
    *f = (factor){.forward = place < 0 ? NULL : x};
    if (x->ndim == WB_MAX_DIMS || (x->flags & WB_NODE_WEAK)) return false;
    if (place < 0) return (f->output = add_output(p, x)) >= 0;
    if (x->op == WB_OP_placeholder) return x->attributes.part.number < first_captured(p->body);
    p->forward.marks[place] |= STORED | NEEDED;
    return true;
}

static bool is_view(const wb_array *x) { return x->op == WB_OP_reshape || x->op == WB_OP_permute; }

/* True if the share can be computed after the loop. */
static bool postpone(pull *p, int32_t input, wb_array *x) {
    share s = {.input = input};
    while (is_view(x) && s.nviews < MOST_VIEWS) s.views[s.nviews++] = x, x = x->inputs[0];
    const bool is_product =
        x->op == WB_OP_matmul && x->ndim == 2 && x->inputs[0]->ndim == 2 && x->inputs[1]->ndim == 2;
    const bool is_other = !is_product && x->op != WB_OP_sum;
    if (is_other || wb_is_half(x->dtype) || place_in(&p->forward, x) >= 0) return false;
    s.of = x;
    if (!as_factor(p, x->inputs[0], &s.factors[0]) ||
        (is_product && !as_factor(p, x->inputs[1], &s.factors[1])))
        return false;
    if (!WB_GROW(p->shares, p->nshares, p->share_capacity)) return false;
    p->shares[p->nshares++] = s;
    return true;
}

static bool is_like(const wb_array *a, const wb_array *b) {
    return a->dtype == b->dtype && wb_same_sizes(a, b);
}

/* x is a sum of shares: returns the sum of those that a carry has to add up. */
static wb_array *split(pull *p, int32_t input, wb_array *x) {
    enum { MOST_TERMS = 64 };
    wb_array *terms[MOST_TERMS], *rest = NULL;
    int count = 0;
    terms[count++] = x;
    while (count > 0) {
        wb_array *term = terms[--count];
        const bool is_sum = term->op == WB_OP_add && count + 2 <= MOST_TERMS &&
                            place_in(&p->forward, term) < 0 && is_like(term, term->inputs[0]) &&
                            is_like(term, term->inputs[1]);
        if (is_sum)
            terms[count++] = term->inputs[1], terms[count++] = term->inputs[0];
        else if (!postpone(p, input, term))
            rest = rest ? ADD(rest, term) : term;
        if (wb_failed()) return NULL;
    }
    return rest;
}

/* The sum of the steps so far, in f32 for halves. */
static bool add_up(pull *p, int32_t input, wb_array *x) {
    const wb_dtype dtype = wb_is_half(x->dtype) ? WB_F32 : (wb_dtype)x->dtype;
    wb_trace_step_out();
    wb_array *zero = zeros_like(p->body->given[input], dtype);
    wb_trace_step_in();
    wb_array *sum = zero ? wb_trace_given(&p->trace, WB_GIVEN_CARRY, zero) : NULL;
    p->result_of[input] = ~(int32_t)p->nresults;
    return sum && add_result(p, ADD(sum, wb_cast(x, dtype)));
}

/* The carries and outputs of the backward body. */
static bool list_results(pull *p) {
    const wb_body *b = p->body;
    const int32_t ngiven = wb_body_given(b);
    p->result_of = wb_alloc((size_t)(ngiven + 1) * sizeof *p->result_of);
    if (!p->result_of) return false;
    for (int32_t i = 0; i < ngiven; i++) {
        wb_array *g = p->gradients[i];
        p->result_of[i] = NOT_THERE;
        if (i < b->ncarries) {
            if (!is_float(b->given[i])) continue;
            p->result_of[i] = ~(int32_t)p->nresults;
            if (!g) g = zeros_like(b->given[i], (wb_dtype)b->given[i]->dtype);
            if (!add_result(p, g)) return false;
        } else if (g && i < first_captured(b)) {
            if ((p->result_of[i] = add_output(p, g)) < 0) return false;
        } else if (g) {
            g = split(p, i, g);
            if (wb_failed() || (g && !add_up(p, i, g))) return false;
        }
    }
    p->ncarries = p->nresults;
    for (int64_t j = 0; j < p->noutputs; j++)
        if (!add_result(p, p->outputs[j])) return false;
    return true;
}

/* ---- what is kept of the forward steps ---- */

/* True if x can be computed again where it is read, because its inputs are kept. */
static bool is_cheap(const wb_array *x) {
    const wb_op_row *row = &wb_op_rows[x->op];
    return row->kind == WB_KIND_ELEMENT || row->kind == WB_KIND_VIEW || row->arity > 0 ||
           (row->kind == WB_KIND_SOURCE && x->op != WB_OP_data);
}

/* The last dimension must stay free for the steps. */
static bool may_store(const wb_array *x) { return x->ndim < WB_MAX_DIMS && !wb_has_results(x); }

static bool choose_stored(pull *p) {
    node_list *f = &p->forward;
    bool *ready = wb_alloc((size_t)(f->table.count + 1) * sizeof *ready);
    for (int64_t i = 0; ready && i < f->table.count; i++) {
        const wb_array *x = f->nodes[i];
        ready[i] = is_cheap(x);
        for (int k = 0; k < x->ninputs && ready[i]; k++)
            ready[i] = ready[place_in(f, x->inputs[k])];
        if ((f->marks[i] & NEEDED) && !ready[i] && may_store(x)) f->marks[i] |= STORED;
        ready[i] = ready[i] || (f->marks[i] & STORED);
    }
    for (int64_t i = f->table.count - 1; ready && i >= 0; i--)
        for (int k = 0; k < f->nodes[i]->ninputs && f->marks[i] == NEEDED; k++)
            f->marks[place_in(f, f->nodes[i]->inputs[k])] |= NEEDED;
    wb_release(ready);
    return ready != NULL;
}

/* The scan's outputs, and after them the arrays of `more` that are not among them. NULL: an
 * error. */
static wb_body *extend(const wb_body *b, int64_t count, wb_array *const *more) {
    wb_body *body = wb_body_new(wb_body_given(b), b->nresults + (int32_t)count);
    if (!body) return NULL;
    body->ncarries = b->ncarries, body->nslices = b->nslices, body->ncaptured = b->ncaptured;
    body->draws = b->draws;
    for (int32_t i = 0; i < wb_body_given(b); i++) body->given[i] = wb_ref(b->given[i]);
    for (int32_t r = 0; r < b->nresults; r++)
        body->results[body->nresults++] = wb_ref(b->results[r]);
    for (int64_t i = 0; i < count; i++) {
        int32_t r = body->ncarries;
        while (r < body->nresults && body->results[r] != more[i]) r++;
        if (r == body->nresults) body->results[body->nresults++] = wb_ref(more[i]);
    }
    return body;
}

/* The output of the source that holds x. */
static wb_array *kept(const pull *p, const wb_array *x) {
    const wb_body *b = wb_body_of(p->source);
    int32_t r = b->ncarries;
    while (b->results[r] != x) r++;
    return wb_scan_result(p->source, r);
}

static bool reads_carry(const pull *p, int32_t i) {
    const int64_t place = place_in(&p->forward, p->body->given[i]);
    return place >= 0 && (p->forward.marks[place] & NEEDED);
}

/* What is kept has one dimension more, that of the steps. */
static bool check_room(int64_t count, wb_array *const *kept) {
    for (int64_t i = 0; i < count; i++) {
        if (kept[i]->ndim < WB_MAX_DIMS) continue;
        (void)wb_fail(WB_ERROR_SHAPE,
                      "scan: the gradient keeps %s of each step; with the dimension of the steps "
                      "it would have more than %d dimensions",
                      wb_text_of(kept[i]), WB_MAX_DIMS);
        return false;
    }
    return true;
}

/* Gives the source its further outputs: the scan itself, as long as it has not been computed. */
static bool keep(pull *p) {
    const wb_body *b = p->body;
    const int64_t most = b->ncarries + p->forward.table.count;
    wb_array **more = wb_alloc((size_t)(most + 1) * sizeof *more);
    int64_t count = 0;
    if (!more) return false;
    for (int32_t i = 0; i < b->ncarries; i++)
        if (reads_carry(p, i)) more[count++] = b->results[i];
    for (int64_t i = 0; i < p->forward.table.count; i++)
        if (p->forward.marks[i] & STORED) more[count++] = p->forward.nodes[i];
    wb_body *body = check_room(count, more) ? extend(b, count, more) : NULL;
    wb_release(more);
    if (!body) return false;
    p->source = p->scan;
    if (p->scan->flags & WB_NODE_COMPUTED) {
        p->source = wb_scan_node(body, p->scan->inputs, p->steps, p->reverse);
        if (p->source) p->source->late[0] = p->scan->late[0];
    } else {
        wb_body_unref(wb_body_of(p->scan));
        p->scan->payload = &body->payload;
    }
    return p->source != NULL;
}

/* Carry i as it was before each step. */
static wb_array *carries_before(const pull *p, int32_t i) {
    wb_array *first = wb_unsqueeze(p->scan->inputs[i], p->scan->inputs[i]->ndim);
    if (!first || p->steps == 1) return first;
    const int dim = first->ndim - 1;
    wb_array *all = kept(p, p->body->results[i]);
    wb_array *rest = all ? p->reverse ? wb_slice(all, dim, 1, p->steps, 1)
                                      : wb_slice(all, dim, 0, p->steps - 1, 1)
                         : NULL;
    wb_array *both[2] = {p->reverse ? rest : first, p->reverse ? first : rest};
    return rest ? wb_concat_make(dim, 2, both) : NULL;
}

/* The numbers of a forward node for all steps, which come last. */
static wb_array *all_steps(const pull *p, const wb_array *x) {
    if (x->op != WB_OP_placeholder) return kept(p, x);
    const int32_t number = (int32_t)x->attributes.part.number;
    return number < p->body->ncarries ? carries_before(p, number) : p->scan->inputs[number];
}

/* ---- the backward body ---- */

static wb_array *forward_stand_in(pull *p, int64_t place) {
    wb_array *x = p->forward.nodes[place];
    const bool is_captured =
        x->op == WB_OP_placeholder && x->attributes.part.number >= first_captured(p->body);
    if (is_captured)
        return wb_trace_given(&p->trace, WB_GIVEN_CAPTURED,
                              p->scan->inputs[x->attributes.part.number]);
    if (x->op != WB_OP_placeholder && !(p->forward.marks[place] & STORED)) return NULL;
    wb_trace_step_out();
    wb_array *outer = all_steps(p, x);
    wb_trace_step_in();
    return outer ? wb_trace_given(&p->trace, WB_GIVEN_SLICE, outer) : NULL;
}

static wb_array *stand_in(void *context, wb_array *x) {
    pull *p = context;
    const int64_t place = place_in(&p->forward, x);
    return place < 0 ? NULL : forward_stand_in(p, place);
}

/* ---- the cotangents of the inputs ---- */

/* All steps of a factor in one matrix: the steps beside the contracted dimension. */
static wb_array *in_one(wb_array *x, bool contracted_first) {
    if (!x) return NULL;
    if (contracted_first) {
        x = wb_permute(x, 0, 2, 1);
        return x ? wb_reshape(x, x->sizes[0] * x->sizes[1], x->sizes[2]) : NULL;
    }
    return wb_reshape(x, x->sizes[0], x->sizes[1] * x->sizes[2]);
}

static wb_array *factor_of(const pull *p, wb_array *node, const factor *f) {
    if (f->forward) return all_steps(p, f->forward);
    return wb_scan_result(node, (int32_t)(p->ncarries + f->output));
}

static wb_array *sum_of_all(const wb_array *of, wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    int count = 0;
    if (!x) return NULL;
    for (int d = 0; d < x->ndim - 1; d++)
        if (of->attributes.reduce.dims >> d & 1) dims[count++] = d;
    dims[count++] = x->ndim - 1;
    wb_array *sum = wb_sum_make(x, count, dims);
    return sum ? wb_reshape_make(sum, of->ndim, of->sizes) : NULL;
}

static wb_array *product_of_all(const pull *p, wb_array *node, const share *s) {
    const bool ta = s->of->attributes.product.flags & WB_MATMUL_TRANSPOSE_A,
               tb = s->of->attributes.product.flags & WB_MATMUL_TRANSPOSE_B;
    wb_array *a = in_one(factor_of(p, node, &s->factors[0]), ta);
    wb_array *b = in_one(factor_of(p, node, &s->factors[1]), !tb);
    return a && b ? wb_matmul_transposed(a, b, ta, tb) : NULL;
}

static wb_array *viewed(const wb_array *view, wb_array *x) {
    if (view->op == WB_OP_reshape) return wb_reshape_make(x, view->ndim, view->sizes);
    int dims[WB_MAX_DIMS];
    int64_t wanted[WB_MAX_DIMS];
    wb_permutation_unpack(view->attributes.permute.order, view->ndim, dims);
    for (int d = 0; d < view->ndim; d++) wanted[d] = dims[d];
    return wb_permute_make(x, view->ndim, wanted);
}

static wb_array *value_of_share(const pull *p, wb_array *node, const share *s) {
    wb_array *x = s->of->op == WB_OP_sum ? sum_of_all(s->of, factor_of(p, node, &s->factors[0]))
                                         : product_of_all(p, node, s);
    for (int i = s->nviews - 1; x && i >= 0; i--) x = viewed(s->views[i], x);
    return x;
}

static bool give(const pull *p, wb_array *node, wb_array **out) {
    const wb_body *b = p->body;
    for (int32_t i = 0; i < wb_body_given(b); i++) {
        const int32_t r = p->result_of[i];
        if (!p->want[i] || r == NOT_THERE) continue;
        out[i] = wb_scan_result(node, r < 0 ? ~r : (int32_t)p->ncarries + r);
        if (!out[i]) return false;
    }
    for (int64_t k = 0; k < p->nshares; k++) {
        wb_array *x = value_of_share(p, node, &p->shares[k]);
        wb_array **sum = &out[p->shares[k].input];
        *sum = *sum && x ? ADD(*sum, x) : x;
        if (!*sum) return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool list_forward(pull *p) {
    for (int32_t r = 0; r < p->body->nresults; r++)
        if (!append_all(&p->forward, p->body->results[r], NULL)) return false;
    return true;
}

static bool mark_needed(pull *p) {
    for (int64_t r = 0; r < p->nresults; r++)
        if (!append_all(&p->backward, p->results[r], &p->forward)) return false;
    for (int64_t k = 0; k < p->nshares; k++)
        for (int f = 0; f < 2; f++) {
            const wb_array *x = p->shares[k].factors[f].forward;
            if (x) p->forward.marks[place_in(&p->forward, x)] |= NEEDED;
        }
    return true;
}

/* The backward scan; NULL with an error recorded. */
static wb_array *backward_scan(pull *p) {
    wb_body *body = NULL;
    if (walk_step(p) && list_forward(p) && list_results(p) && mark_needed(p) && choose_stored(p) &&
        keep(p))
        body = wb_trace_close(&p->trace, (int32_t)p->nresults, p->results);
    if (!body) return NULL;
    body->draws = -p->body->draws;
    wb_array **inputs = wb_trace_inputs(&p->trace);
    wb_trace_step_out();
    wb_array *node = wb_scan_node(body, inputs, p->steps, !p->reverse);
    wb_trace_step_in();
    if (node) node->late[0] = p->scan->late[0];
    wb_release(inputs);
    return node;
}

/* Passes arrays from outside to the scope around the trace. */
static bool leave(pull *p, wb_array *node, wb_array **out) {
    wb_trace_step_out();
    const bool done = node && give(p, node, out);
    wb_trace_step_in();
    for (int32_t i = 0; i < wb_body_given(p->body); i++)
        if (out[i]) wb_ref(out[i]);
    wb_trace_leave(&p->trace);
    bool added = true;
    for (int32_t i = 0; i < wb_body_given(p->body); i++) {
        if (!out[i]) continue;
        added = wb_scope_add(out[i]) && added;
        wb_unref(out[i]);
    }
    return done && added;
}

bool wb_pull_scan(wb_array *scan, wb_array *const *cotangents, const bool *want, wb_array **out) {
    pull p = {.scan = scan,
              .body = wb_body_ref(wb_body_of(scan)),
              .steps = scan->attributes.scan.steps,
              .reverse = scan->attributes.scan.reverse != 0,
              .cotangents = cotangents,
              .want = want};
    bool done = wb_trace_begin(&p.trace, stand_in, &p);
    p.trace.copier.draws = (p.steps - 1) * p.body->draws; /* the last step comes first */
    if (done) done = leave(&p, backward_scan(&p), out);
    wb_trace_end(&p.trace);
    list_end(&p.forward);
    list_end(&p.backward);
    wb_release(p.gradients);
    wb_release(p.results);
    wb_release(p.outputs);
    wb_release(p.shares);
    wb_release(p.result_of);
    wb_body_unref(p.body);
    return done;
}
