/* The free stretches of a workspace: a treap by offset (Seidel and Aragon 1996) in which each node
 * stores the longest stretch below it, so that the first that fits is found in O(log n). */

#include "evaluate/gaps.h"
#include "base/memory.h"

struct wb_gap {
    int64_t offset, size, most; /* most: the longest of the subtree */
    int32_t left, right;        /* 0: none */
    uint32_t priority;
};

static int64_t most_of(const wb_gaps *gaps, int32_t node) {
    return node ? gaps->nodes[node].most : 0;
}

static void renew(wb_gaps *gaps, int32_t node) {
    struct wb_gap *n = &gaps->nodes[node];
    const int64_t left = most_of(gaps, n->left), right = most_of(gaps, n->right);
    n->most = n->size;
    if (left > n->most) n->most = left;
    if (right > n->most) n->most = right;
}

/* Two treaps, all of the left one before all of the right one. Depth and recursion are O(log n). */
static int32_t joined(wb_gaps *gaps, int32_t left, int32_t right) {
    if (!left || !right) return left ? left : right;
    struct wb_gap *l = &gaps->nodes[left], *r = &gaps->nodes[right];
    const bool left_is_root = l->priority > r->priority;
    if (left_is_root)
        l->right = joined(gaps, l->right, right);
    else
        r->left = joined(gaps, left, r->left);
    renew(gaps, left_is_root ? left : right);
    return left_is_root ? left : right;
}

/* Gaps before the offset, and all others. */
static void split(wb_gaps *gaps, int32_t node, int64_t offset, int32_t *before, int32_t *behind) {
    if (!node) {
        *before = *behind = 0;
        return;
    }
    struct wb_gap *n = &gaps->nodes[node];
    if (n->offset < offset) {
        split(gaps, n->right, offset, &n->right, behind);
        *before = node;
    } else {
        split(gaps, n->left, offset, before, &n->left);
        *behind = node;
    }
    renew(gaps, node);
}

static uint32_t next_priority(wb_gaps *gaps) {
    gaps->random ^= gaps->random << 13; /* xorshift32 (Marsaglia 2003) */
    gaps->random ^= gaps->random >> 17;
    return gaps->random ^= gaps->random << 5;
}

static int32_t new_gap(wb_gaps *gaps, int64_t offset, int64_t size) {
    int32_t node = gaps->unused;
    if (node)
        gaps->unused = gaps->nodes[node].left;
    else {
        if (!WB_GROW(gaps->nodes, gaps->count, gaps->capacity)) return 0;
        node = (int32_t)gaps->count++;
    }
    gaps->nodes[node] = (struct wb_gap){
        .offset = offset, .size = size, .most = size, .priority = next_priority(gaps)};
    return node;
}

static void drop(wb_gaps *gaps, int32_t node) {
    gaps->nodes[node].left = gaps->unused;
    gaps->unused = node;
}

bool wb_gaps_begin(wb_gaps *gaps) {
    *gaps = (wb_gaps){.random = 2463534242u};
    if (!WB_GROW(gaps->nodes, gaps->count, gaps->capacity)) return false;
    gaps->nodes[gaps->count++] = (struct wb_gap){.size = 0}; /* number 0 means none */
    return (gaps->root = new_gap(gaps, 0, INT64_MAX)) != 0;
}

void wb_gaps_end(wb_gaps *gaps) { wb_release(gaps->nodes); }

int64_t wb_gaps_take(wb_gaps *gaps, int64_t size) {
    int32_t node = gaps->root, before, rest, behind;
    for (;;) { /* the last gap has no end, so one fits */
        const struct wb_gap *n = &gaps->nodes[node];
        if (most_of(gaps, n->left) >= size)
            node = n->left;
        else if (n->size >= size)
            break;
        else
            node = n->right;
    }
    const int64_t offset = gaps->nodes[node].offset;
    split(gaps, gaps->root, offset, &before, &rest);
    split(gaps, rest, offset + 1, &node, &behind);
    struct wb_gap *n = &gaps->nodes[node];
    n->offset += size, n->size -= size, n->most = n->size;
    if (n->size == 0) drop(gaps, node), node = 0;
    gaps->root = joined(gaps, joined(gaps, before, node), behind);
    return offset;
}

/* The gap at the right (or left) end of the treap, taken out of it; 0: there is none. */
static int32_t end_of(wb_gaps *gaps, int32_t node, bool right) {
    while (node) {
        const int32_t next = right ? gaps->nodes[node].right : gaps->nodes[node].left;
        if (!next) break;
        node = next;
    }
    return node;
}

bool wb_gaps_give(wb_gaps *gaps, int64_t offset, int64_t size) {
    int32_t before, behind, node;
    split(gaps, gaps->root, offset, &before, &behind);
    const int32_t left = end_of(gaps, before, true), right = end_of(gaps, behind, false);
    if (left && gaps->nodes[left].offset + gaps->nodes[left].size == offset) {
        offset = gaps->nodes[left].offset, size += gaps->nodes[left].size;
        split(gaps, before, offset, &before, &node);
        drop(gaps, node);
    }
    if (right && gaps->nodes[right].offset == offset + size) {
        size += gaps->nodes[right].size;
        split(gaps, behind, gaps->nodes[right].offset + 1, &node, &behind);
        drop(gaps, node);
    }
    node = new_gap(gaps, offset, size);
    gaps->root = joined(gaps, joined(gaps, before, node), behind);
    return node != 0;
}
