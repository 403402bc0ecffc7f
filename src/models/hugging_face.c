/* Models of language from folders of Hugging Face's. An architecture is a row: which maker, which
 * settings of config.json it takes, and the table of its arrays' names. Settings, their names and
 * their defaults are those of `transformers` 4 and 5 (configuration_gpt2.py, ..., modeling_*.py).
 * Nothing in the folder is executed. */
#include "models/hugging_face.h"

#include <string.h>
#include <weber/language.h>
#include <weber/ops.h>

#include "array/use.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/index.h"
#include "formats/json.h"
#include "models/load.h"
#include "models/rename.h"

typedef enum kind {
    INTEGER,
    REAL,
    POSITIVE, /* a real; the desc takes 0 for its default */
    BOOL,
    ACTIVATION,
    MUST_BE_FALSE,
    MUST_BE_TRUE,
    MUST_BE_ABSENT
} kind;

/* A setting of config.json, and the member of the desc that gets it. null counts as absent, and
 * what is absent keeps the desc's own default. */
typedef struct setting {
    const char *name;
    kind kind;
    size_t offset;
} setting;

/* A row of the rename table, where @ is the prefix of the names, # the number of the layer after
 * the blocks, and ## the one after that. */
typedef struct name_row {
    const char *row;
    const char *only_if; /* an array that the file must have for this row, with @; NULL: always */
} name_row;

typedef union desc {
    wb_gpt2_desc gpt2;
    wb_llama_desc llama;
    wb_bert_desc bert;
} desc;

typedef struct family {
    void (*begin)(desc *d); /* the settings that config.json need not have */
    const setting *settings;
    const name_row *names;
    const char *embedding;          /* the first array's name, by which the prefix is found */
    const char *const *prefixes;    /* ends with NULL */
    int64_t before;                 /* layers before the blocks */
    double (*least)(const desc *d); /* numbers that the model has at least */
    size_t layers, head, tied;      /* offsets of members; tied 0: there is no head */
    size_t init, dtype;
    wb_layer *(*make)(const desc *d);
    bool has_rotary;
} family;

#define END                                                                                        \
    { NULL, INTEGER, 0 }
/* What all architectures must not have, since their numbers would be others. */
#define REFUSED                                                                                    \
    {"quantization_config", MUST_BE_ABSENT, 0}, { "add_cross_attention", MUST_BE_FALSE, 0 }

/* Of matrices with so many columns: their rows outside of the blocks, and in each. */
static double least(int64_t columns, double outside, int64_t layers, double inside) {
    return (double)columns * (outside + (double)layers * inside);
}

/* ---- GPT-2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, kind, offsetof(wb_gpt2_desc, member) }
static const setting gpt2_settings[] = {
    ROW("vocab_size", INTEGER, vocabulary),
    ROW("n_positions", INTEGER, positions),
    ROW("n_embd", INTEGER, features),
    ROW("n_layer", INTEGER, layers),
    ROW("n_head", INTEGER, heads),
    ROW("n_inner", INTEGER, hidden),
    ROW("activation_function", ACTIVATION, activation),
    ROW("resid_pdrop", REAL, dropout),
    ROW("layer_norm_epsilon", POSITIVE, eps),
    ROW("tie_word_embeddings", BOOL, tied),
    {"scale_attn_weights", MUST_BE_TRUE, 0},
    {"scale_attn_by_inverse_layer_idx", MUST_BE_FALSE, 0},
    REFUSED,
    END,
};
#undef ROW

static const char *const gpt2_prefixes[] = {"transformer.", "", NULL};
static const name_row gpt2_names[] = {
    {"@wte.weight -> layers.1.weight", NULL},
    {"@wpe.weight -> layers.2.weight", NULL},
    {"@h.*.ln_*.weight -> layers.*+4.norm*.diag.scale", NULL},
    {"@h.*.ln_*.bias -> layers.*+4.norm*.diag.bias", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.q_proj.weight part 1/3 along 0", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.k_proj.weight part 2/3 along 0", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.v_proj.weight part 3/3 along 0", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.q_proj.bias part 1/3", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.k_proj.bias part 2/3", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.v_proj.bias part 3/3", NULL},
    {"@h.*.attn.c_proj.* -> layers.*+4.attention.out_proj.*", NULL},
    {"@h.*.mlp.c_fc.* -> layers.*+4.feed_forward.layers.1.*", NULL},
    {"@h.*.mlp.c_proj.* -> layers.*+4.feed_forward.layers.3.*", NULL},
    {"@ln_f.weight -> layers.#.diag.scale", NULL},
    {"@ln_f.bias -> layers.#.diag.bias", NULL},
    {"@h.*.attn.bias ->", "@h.0.attn.bias"}, /* the causal mask */
    {"@h.*.attn.masked_bias ->", "@h.0.attn.masked_bias"},
    {NULL, NULL},
};

static void begin_gpt2(desc *d) { d->gpt2 = WB_DESC(gpt2, .eps = 1e-5); }
static double least_of_gpt2(const desc *d) {
    const wb_gpt2_desc *s = &d->gpt2;
    return least(s->features, (double)s->vocabulary + (double)s->positions, s->layers,
                 (double)s->features + (double)s->hidden);
}
static wb_layer *make_gpt2(const desc *d) { return wb_gpt2_make(d->gpt2); }

/* ---- Llama, Mistral, Qwen2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, kind, offsetof(wb_llama_desc, member) }
#define LLAMA_SETTINGS                                                                             \
    ROW("vocab_size", INTEGER, vocabulary), ROW("hidden_size", INTEGER, features),                 \
        ROW("num_hidden_layers", INTEGER, layers), ROW("num_attention_heads", INTEGER, heads),     \
        ROW("num_key_value_heads", INTEGER, kv_heads), ROW("head_dim", INTEGER, head_features),    \
        ROW("intermediate_size", INTEGER, hidden), ROW("hidden_act", ACTIVATION, activation),      \
        ROW("rms_norm_eps", POSITIVE, eps), ROW("rope_theta", POSITIVE, rotary),                   \
        ROW("tie_word_embeddings", BOOL, tied), REFUSED
static const setting llama_settings[] = {LLAMA_SETTINGS, ROW("attention_bias", BOOL, bias),
                                         ROW("attention_bias", BOOL, out_bias),
                                         ROW("mlp_bias", BOOL, feed_forward_bias), END};
static const setting mistral_settings[] = {LLAMA_SETTINGS, ROW("sliding_window", INTEGER, window),
                                           END};
static const setting qwen2_settings[] = {
    LLAMA_SETTINGS, {"use_sliding_window", MUST_BE_FALSE, 0}, END};
#undef ROW

static const char *const llama_prefixes[] = {"model.", "", NULL};
static const name_row llama_names[] = {
    {"@embed_tokens.weight -> layers.1.weight", NULL},
    {"@layers.*.input_layernorm.weight -> layers.*+2.norm1.scale", NULL},
    {"@layers.*.post_attention_layernorm.weight -> layers.*+2.norm2.scale", NULL},
    {"@layers.*.self_attn.o_proj.weight -> layers.*+2.attention.out_proj.weight transpose", NULL},
    {"@layers.*.self_attn.o_proj.bias -> layers.*+2.attention.out_proj.bias",
     "@layers.0.self_attn.o_proj.bias"},
    {"@layers.*.self_attn.*_proj.weight -> layers.*+2.attention.*_proj.weight transpose", NULL},
    {"@layers.*.self_attn.*_proj.bias -> layers.*+2.attention.*_proj.bias",
     "@layers.0.self_attn.q_proj.bias"},
    {"@layers.*.mlp.gate_proj.weight -> layers.*+2.feed_forward.layers.1.layers.1.weight transpose",
     NULL},
    {"@layers.*.mlp.up_proj.weight -> layers.*+2.feed_forward.layers.1.layers.2.weight transpose",
     NULL},
    {"@layers.*.mlp.down_proj.weight -> layers.*+2.feed_forward.layers.2.weight transpose", NULL},
    {"@layers.*.mlp.gate_proj.bias -> layers.*+2.feed_forward.layers.1.layers.1.bias",
     "@layers.0.mlp.gate_proj.bias"},
    {"@layers.*.mlp.up_proj.bias -> layers.*+2.feed_forward.layers.1.layers.2.bias",
     "@layers.0.mlp.up_proj.bias"},
    {"@layers.*.mlp.down_proj.bias -> layers.*+2.feed_forward.layers.2.bias",
     "@layers.0.mlp.down_proj.bias"},
    {"@norm.weight -> layers.#.scale", NULL},
    {"@layers.*.self_attn.rotary_emb.inv_freq ->", "@layers.0.self_attn.rotary_emb.inv_freq"},
    {NULL, NULL},
};

static void begin_llama(desc *d) { d->llama = WB_DESC(llama, .vocabulary = 32000, .eps = 1e-6); }
static void begin_qwen2(desc *d) {
    begin_llama(d);
    d->llama.bias = true;
}
static double least_of_llama(const desc *d) {
    const wb_llama_desc *s = &d->llama;
    const bool is_given = s->head_features != 0;
    const double qk = is_given ? (double)s->heads * (double)s->head_features : (double)s->features;
    return least(s->features, (double)s->vocabulary, s->layers, qk + (double)s->hidden);
}
static wb_layer *make_llama(const desc *d) { return wb_llama_make(d->llama); }

/* ---- BERT ---- */

#define ROW(name, kind, member)                                                                    \
    { name, kind, offsetof(wb_bert_desc, member) }
static const setting bert_settings[] = {
    ROW("vocab_size", INTEGER, vocabulary),
    ROW("max_position_embeddings", INTEGER, positions),
    ROW("type_vocab_size", INTEGER, types),
    ROW("hidden_size", INTEGER, features),
    ROW("num_hidden_layers", INTEGER, layers),
    ROW("num_attention_heads", INTEGER, heads),
    ROW("intermediate_size", INTEGER, hidden),
    ROW("hidden_act", ACTIVATION, activation),
    ROW("hidden_dropout_prob", REAL, dropout),
    ROW("layer_norm_eps", POSITIVE, eps),
    {"is_decoder", MUST_BE_FALSE, 0},
    REFUSED,
    END,
};
#undef ROW

static const char *const bert_prefixes[] = {"bert.", "", NULL};
#define NORM(from, to)                                                                             \
    {from ".weight -> " to ".diag.scale", from ".weight"},                                         \
        {from ".bias -> " to ".diag.bias", from ".bias"},                                          \
        {from ".gamma -> " to ".diag.scale", from ".gamma"}, /* before 2019 */                     \
    {                                                                                              \
        from ".beta -> " to ".diag.bias", from ".beta"                                             \
    }
#define NORMS(from, to)                                                                            \
    {"@encoder.layer.*." from ".weight -> layers.*+2." to ".diag.scale",                           \
     "@encoder.layer.0." from ".weight"},                                                          \
        {"@encoder.layer.*." from ".bias -> layers.*+2." to ".diag.bias",                          \
         "@encoder.layer.0." from ".bias"},                                                        \
        {"@encoder.layer.*." from ".gamma -> layers.*+2." to ".diag.scale",                        \
         "@encoder.layer.0." from ".gamma"},                                                       \
    {                                                                                              \
        "@encoder.layer.*." from ".beta -> layers.*+2." to ".diag.bias",                           \
            "@encoder.layer.0." from ".beta"                                                       \
    }
#define LINEAR(from, to)                                                                           \
    {"@encoder.layer.*." from ".weight -> layers.*+2." to ".weight transpose", NULL}, {            \
        "@encoder.layer.*." from ".bias -> layers.*+2." to ".bias", NULL                           \
    }
static const name_row bert_names[] = {
    {"@embeddings.word_embeddings.weight -> layers.1.words.weight", NULL},
    {"@embeddings.position_embeddings.weight -> layers.1.positions.weight", NULL},
    {"@embeddings.token_type_embeddings.weight -> layers.1.types.weight", NULL},
    NORM("@embeddings.LayerNorm", "layers.1.norm"),
    {"@embeddings.position_ids ->", "@embeddings.position_ids"},
    LINEAR("attention.self.query", "attention.q_proj"),
    LINEAR("attention.self.key", "attention.k_proj"),
    LINEAR("attention.self.value", "attention.v_proj"),
    LINEAR("attention.output.dense", "attention.out_proj"),
    NORMS("attention.output.LayerNorm", "norm1"),
    LINEAR("intermediate.dense", "feed_forward.layers.1"),
    LINEAR("output.dense", "feed_forward.layers.3"),
    NORMS("output.LayerNorm", "norm2"),
    /* what comes after the encoder is left out */
    {"@pooler.** ->", "@pooler.dense.weight"},
    {"cls.** ->", "cls.predictions.transform.dense.weight"},
    {"classifier.** ->", "classifier.weight"},
    {"qa_outputs.** ->", "qa_outputs.weight"},
    {NULL, NULL},
};

static void begin_bert(desc *d) { d->bert = WB_DESC(bert, .types = 2); }
static double least_of_bert(const desc *d) {
    const wb_bert_desc *s = &d->bert;
    return least(s->features, (double)s->vocabulary + (double)s->positions + (double)s->types,
                 s->layers, (double)s->features + (double)s->hidden);
}
static wb_layer *make_bert(const desc *d) { return wb_bert_make(d->bert); }

/* ---- the rows ---- */

#define LLAMA(settings_, begin_)                                                                   \
    {                                                                                              \
        .begin = begin_, .settings = settings_, .names = llama_names,                              \
        .embedding = "embed_tokens.weight", .prefixes = llama_prefixes, .before = 1,               \
        .layers = offsetof(wb_llama_desc, layers), .head = offsetof(wb_llama_desc, head),          \
        .tied = offsetof(wb_llama_desc, tied), .init = offsetof(wb_llama_desc, init),              \
        .dtype = offsetof(wb_llama_desc, dtype), .least = least_of_llama, .make = make_llama,      \
        .has_rotary = true                                                                         \
    }
static const family gpt2 = {.begin = begin_gpt2,
                            .settings = gpt2_settings,
                            .names = gpt2_names,
                            .embedding = "wte.weight",
                            .prefixes = gpt2_prefixes,
                            .before = 3,
                            .layers = offsetof(wb_gpt2_desc, layers),
                            .head = offsetof(wb_gpt2_desc, head),
                            .tied = offsetof(wb_gpt2_desc, tied),
                            .init = offsetof(wb_gpt2_desc, init),
                            .dtype = offsetof(wb_gpt2_desc, dtype),
                            .least = least_of_gpt2,
                            .make = make_gpt2};
static const family llama = LLAMA(llama_settings, begin_llama);
static const family mistral = LLAMA(mistral_settings, begin_llama);
static const family qwen2 = LLAMA(qwen2_settings, begin_qwen2);
static const family bert = {.begin = begin_bert,
                            .settings = bert_settings,
                            .names = bert_names,
                            .embedding = "embeddings.word_embeddings.weight",
                            .prefixes = bert_prefixes,
                            .before = 1,
                            .layers = offsetof(wb_bert_desc, layers),
                            .init = offsetof(wb_bert_desc, init),
                            .dtype = offsetof(wb_bert_desc, dtype),
                            .least = least_of_bert,
                            .make = make_bert};

/* By the first of config.json's "architectures". */
static const struct architecture {
    const char *name;
    const family *family;
    bool has_head; /* the logits of the next token; else the features before them */
} architectures[] = {
    {"GPT2LMHeadModel", &gpt2, true},
    {"GPT2Model", &gpt2, false},
    {"LlamaForCausalLM", &llama, true},
    {"LlamaModel", &llama, false},
    {"MistralForCausalLM", &mistral, true},
    {"MistralModel", &mistral, false},
    {"Qwen2ForCausalLM", &qwen2, true},
    {"Qwen2Model", &qwen2, false},
    {"BertModel", &bert, false},
    {"BertForMaskedLM", &bert, false},
    {"BertForPreTraining", &bert, false},
};

static const struct {
    const char *name;
    wb_activation *activation;
} activations[] = {{"gelu", wb_gelu_erf},  {"gelu_new", wb_gelu}, {"gelu_pytorch_tanh", wb_gelu},
                   {"gelu_fast", wb_gelu}, {"relu", wb_relu},     {"silu", wb_swish},
                   {"swish", wb_swish},    {"tanh", wb_tanh},     {"sigmoid", wb_sigmoid}};

/* A folder that is being read. */
typedef struct reader {
    const char *folder;
    wb_file *config;
    const wb_json *root;
    const struct architecture *architecture;
    const family *family;
    desc desc;
    wb_file *weights;
    const char *prefix;
    wb_text table;
} reader;

static void *member(reader *r, size_t offset) { return (char *)&r->desc + offset; }

/* ---- config.json ---- */

/* The member, which is neither absent nor null; else NULL. */
static const wb_json *given(const wb_json *object, const char *name) {
    const wb_json *value = wb_json_get(object, name);
    return value && value->kind != WB_JSON_NULL ? value : NULL;
}

static bool find_architecture(reader *r) {
    const wb_json *list = given(r->root, "architectures");
    const wb_json *first = list && list->kind == WB_JSON_LIST && list->count ? list->items : NULL;
    const char *name = wb_json_text(first);
    if (!name)
        return wb_json_fault(r->config, list ? list : r->root,
                             "architectures must be a list of texts, but is %s",
                             wb_json_noun(list)) == WB_OK;
    wb_text known = {.data = NULL};
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        if (strcmp(architectures[i].name, name) == 0) r->architecture = &architectures[i];
        wb_text_add(&known, "%s%s", i ? ", " : "", architectures[i].name);
    }
    if (!r->architecture)
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s, offset %lld: the architecture must be one of %s, but is %.80s",
                      r->config->path, (long long)first->offset,
                      wb_text_status(&known) == WB_OK ? known.data : "those in docs/files.md",
                      name);
    wb_text_release(&known);
    r->family = r->architecture ? r->architecture->family : NULL;
    return r->family != NULL;
}

static bool wanted(const reader *r, const wb_json *value, const char *name, const char *what) {
    (void)wb_json_fault(r->config, value, "%s must be %s, but is %s", name, what,
                        wb_json_noun(value));
    return false;
}

static bool refuse(const reader *r, const wb_json *value, const char *what) {
    (void)wb_fail(WB_ERROR_UNSUPPORTED, "%s, offset %lld: models with %s cannot be made",
                  r->config->path, (long long)value->offset, what);
    return false;
}

static bool find_activation(const reader *r, const wb_json *value, wb_activation **activation) {
    const char *name = wb_json_text(value);
    if (!name) return wanted(r, value, "the activation", "a text");
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].name, name) == 0) {
            *activation = activations[i].activation;
            return true;
        }
    char what[120];
    (void)snprintf(what, sizeof what, "the activation %.80s", name);
    return refuse(r, value, what);
}

static bool take_positive(const reader *r, const wb_json *value, const char *name, double *number) {
    if (!wb_json_number(value, number)) return wanted(r, value, name, "a number");
    if (*number > 0) return true;
    (void)wb_json_fault(r->config, value, "%s must be positive, but is %g", name, *number);
    return false;
}

static bool take_setting(reader *r, const setting *s) {
    const wb_json *value = given(r->root, s->name);
    char what[80];
    bool flag = false;
    if (!value) return true;
    switch (s->kind) {
    case INTEGER:
        return wb_json_integer(value, member(r, s->offset)) ||
               wanted(r, value, s->name, "an integer");
    case REAL:
        return wb_json_number(value, member(r, s->offset)) || wanted(r, value, s->name, "a number");
    case POSITIVE:
        return take_positive(r, value, s->name, member(r, s->offset));
    case BOOL:
        return wb_json_bool(value, member(r, s->offset)) || wanted(r, value, s->name, "a bool");
    case ACTIVATION:
        return find_activation(r, value, member(r, s->offset));
    case MUST_BE_FALSE:
        return (wb_json_bool(value, &flag) && !flag) || refuse(r, value, s->name);
    case MUST_BE_TRUE:
        (void)snprintf(what, sizeof what, "%s = false", s->name);
        return (wb_json_bool(value, &flag) && flag) || refuse(r, value, what);
    case MUST_BE_ABSENT:
        return refuse(r, value, s->name);
    }
    return true;
}

static bool lacks(const reader *r, const wb_json *object, const char *name) {
    (void)wb_json_fault(r->config, object, "%s is missing", name);
    return false;
}

/* A member that must be there. */
static bool take_number(const reader *r, const wb_json *object, const char *name, double *number) {
    const wb_json *value = given(object, name);
    return value ? take_positive(r, value, name, number) : lacks(r, object, name);
}

static bool take_llama3(const reader *r, const wb_json *rope, wb_llama_desc *d) {
    static const char name[] = "original_max_position_embeddings";
    const wb_json *length = given(rope, name);
    if (!length) return lacks(r, rope, name);
    return take_number(r, rope, "low_freq_factor", &d->rotary_low) &&
           take_number(r, rope, "high_freq_factor", &d->rotary_high) &&
           (wb_json_integer(length, &d->rotary_length) || wanted(r, length, name, "an integer"));
}

/* rope_scaling, or, in transformers 5, rope_parameters, which has rope_theta, too. */
static bool take_rotary(reader *r) {
    wb_llama_desc *d = &r->desc.llama;
    const char *name = "rope_parameters";
    const wb_json *rope = given(r->root, name);
    if (!rope) rope = given(r->root, name = "rope_scaling");
    if (!rope) return true;
    if (rope->kind != WB_JSON_OBJECT) return wanted(r, rope, name, "an object");
    const wb_json *base = given(rope, "rope_theta"), *type = given(rope, "rope_type");
    if (base && !take_positive(r, base, "rope_theta", &d->rotary)) return false;
    if (!type) type = given(rope, "type");
    if (!type || wb_json_is(type, "default")) return true;
    const bool is_linear = wb_json_is(type, "linear"), is_llama3 = wb_json_is(type, "llama3");
    if (!is_linear && !is_llama3) {
        char what[120];
        const char *text = wb_json_text(type);
        (void)snprintf(what, sizeof what, "rotary positions of the type %.80s", text ? text : "?");
        return refuse(r, type, what);
    }
    return take_number(r, rope, "factor", &d->rotary_factor) &&
           (is_linear || take_llama3(r, rope, d));
}

static bool take_positions(reader *r) {
    const wb_json *type = given(r->root, "position_embedding_type");
    if (r->family->has_rotary) return take_rotary(r);
    return !type || wb_json_is(type, "absolute") ||
           refuse(r, type, "another position_embedding_type than absolute");
}

static bool read_config(reader *r) {
    char *path = wb_path_in(r->folder, strlen(r->folder), "config.json");
    r->config = path ? wb_json_open(path, &r->root) : NULL;
    wb_release(path);
    if (!r->config || !find_architecture(r)) return false;
    r->family->begin(&r->desc);
    for (const setting *s = r->family->settings; s->name; s++)
        if (!take_setting(r, s)) return false;
    if (r->family->head) *(bool *)member(r, r->family->head) = r->architecture->has_head;
    return take_positions(r);
}

/* ---- the arrays ---- */

static const wb_record *array_named(const reader *r, const char *prefix, const char *name) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s%s", *name == '@' ? prefix : "", name + (*name == '@'));
    const wb_record *x = wb_record_below(r->weights->root, path);
    return x && x->kind == WB_RECORD_ARRAY ? x : NULL;
}

/* Opens the weights; finds the prefix of their names, and their type. */
static bool open_weights(reader *r) {
    const family *f = r->family;
    char name[80];
    r->weights = wb_open(r->folder);
    if (!r->weights) return false;
    (void)snprintf(name, sizeof name, "@%s", f->embedding);
    for (int i = 0; f->prefixes[i]; i++) {
        const wb_record *x = array_named(r, f->prefixes[i], name);
        if (!x) continue;
        r->prefix = f->prefixes[i];
        *(wb_dtype *)member(r, f->dtype) = (wb_dtype)x->dtype;
        return true;
    }
    (void)wb_fail(WB_ERROR_FORMAT, "%s: a %s must have the array %s%s", r->weights->path,
                  r->architecture->name, f->prefixes[0], f->embedding);
    return false;
}

static void put_row(reader *r, const char *row, int64_t after) {
    for (; *row; row++)
        if (*row == '@')
            wb_text_put(&r->table, r->prefix);
        else if (*row == '#')
            wb_text_add(&r->table, "%lld", (long long)after);
        else
            wb_text_byte(&r->table, *row);
    wb_text_byte(&r->table, '\n');
}

/* The rename table of this file. */
static bool make_table(reader *r) {
    const family *f = r->family;
    const int64_t after = f->before + *(const int64_t *)member(r, f->layers) + 1;
    const bool tied = f->tied && *(const bool *)member(r, f->tied);
    const bool has_head = f->head && r->architecture->has_head;
    const bool file_has_head = f->head && array_named(r, "", "lm_head.weight");
    for (const name_row *n = f->names; n->row; n++)
        if (!n->only_if || array_named(r, r->prefix, n->only_if)) put_row(r, n->row, after);
    if (has_head && tied) {
        wb_text_add(&r->table, "%s%s -> layers.%lld.weight transpose\n", r->prefix, f->embedding,
                    (long long)after + 1);
        if (file_has_head) wb_text_put(&r->table, "lm_head.weight ->\n");
    } else if (has_head)
        wb_text_add(&r->table, "lm_head.weight -> layers.%lld.weight transpose\n",
                    (long long)after + 1);
    else if (file_has_head)
        wb_text_put(&r->table, "lm_head.weight ->\n");
    wb_text_byte(&r->table, 0);
    return wb_text_status(&r->table) == WB_OK;
}

static bool add_numbers(wb_record *r, void *sum) {
    double count = r->kind == WB_RECORD_ARRAY ? 1 : 0;
    for (int d = 0; d < r->ndim; d++) count *= (double)r->sizes[d];
    *(double *)sum += count;
    return true;
}

/* A small file does not make a large model: no memory is asked for that the file cannot fill. */
static bool has_room(const reader *r) {
    const double wants = r->family->least(&r->desc);
    double has = 0;
    (void)wb_record_walk(r->weights->root, add_numbers, &has);
    if (wants <= has) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the model has at least %.0f numbers, but the weights %.0f",
                  r->config->path, wants, has);
    return false;
}

/* All that the architecture has must be in the file. */
static bool load(reader *r, wb_layer *model) {
    wb_source source = {
        .file = r->weights, .noun = "file", .is_renamed = true, .needs_biases = true};
    source.root = make_table(r) ? wb_rename(r->weights, r->weights->root, r->table.data) : NULL;
    return source.root && wb_load_source(&source, &(wb_load_desc){.model = model}) == WB_OK;
}

static wb_layer *make(reader *r) {
    if (!read_config(r) || !open_weights(r) || !has_room(r)) return NULL;
    *(wb_init **)member(r, r->family->init) = wb_zeros_init; /* the file has the numbers */
    const uint64_t errors = wb_error_count();
    wb_layer *model = r->family->make(&r->desc);
    if (!model) wb_error_prefix(errors, "%s: ", r->config->path);
    if (model && load(r, model)) return model;
    wb_free(model);
    return NULL;
}

wb_layer *wb_hugging_face_model(const char *folder) {
    reader r = {.folder = folder};
    wb_layer *model = make(&r);
    wb_text_release(&r.table);
    wb_free(r.weights), wb_free(r.config);
    return model;
}

/* ---- the end of texts ---- */

/* The first one that the file names; -1: none, and with an error. */
static int64_t end_in(const char *folder, const char *name) {
    const wb_json *root;
    int64_t token = -1;
    char *path = wb_path_in(folder, strlen(folder), name);
    wb_file *file = path ? wb_json_open(path, &root) : NULL;
    const wb_json *value = file ? given(root, "eos_token_id") : NULL;
    if (value && value->kind == WB_JSON_LIST && value->count) value = value->items;
    if (value && (!wb_json_integer(value, &token) || token < 0 || token > INT32_MAX)) {
        (void)wb_json_fault(file, value, "eos_token_id must be a token, but is %s",
                            wb_json_noun(value));
        token = -1;
    }
    wb_free(file);
    wb_release(path);
    return token;
}

int64_t wb_end_token(const char *folder) {
    if (wb_failed()) return (void)wb_not_run("wb_end_token"), -1;
    if (!folder) return wb_fail_argument_null("wb_end_token", "the folder") ? 0 : -1;
    int64_t token = -1;
    if (wb_has_file(folder, "generation_config.json"))
        token = end_in(folder, "generation_config.json");
    return token < 0 && !wb_failed() ? end_in(folder, "config.json") : token;
}
