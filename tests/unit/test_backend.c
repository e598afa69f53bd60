#include "plan_fixture.h"

static oos_backend_choice choose(fixture *f)
{
    oos_backend_choice choice;
    oomsight_error error = {0};
    fixture_setup(f);
    assert_int_equal(oos_backend_choose(f->arena, &f->setup, &f->attentions[0], &choice, &error),
                     OOMSIGHT_OK);
    return choice;
}

static void chooses(const char *version, unsigned capability, uint64_t head, const char *kv,
                    const char *expected)
{
    fixture f;
    fixture_init(&f, version, capability);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 32, head, 0), 1);
    f.serve.kv_cache_dtype = kv;
    oos_backend_choice const choice = choose(&f);
    assert_int_equal(choice.refused, expected == NULL);
    if (expected) assert_string_equal(choice.name, expected);
    fixture_free(&f);
}

/* OPT-2.7B and Phi-2 have heads of 80 elements. */
static void head_size_80_goes_where_each_release_sends_it(void **state)
{
    (void)state;
    chooses("0.9.0", 80, 80, NULL, NULL); /* start-up error */
    chooses("0.9.2", 80, 80, NULL, "FLEX_ATTENTION");
    chooses("0.11.0", 80, 80, NULL, "FLEX_ATTENTION");
    chooses("0.11.1", 80, 80, NULL, "TRITON_ATTN");
    chooses("0.12.0", 80, 80, NULL, "FLASH_ATTN");
    chooses("0.32.0", 80, 80, NULL, "FLASH_ATTN");
    chooses("0.11.0", 80, 64, NULL, "FLASH_ATTN");
}

static void the_reason_names_the_head_size(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.11.0", 80);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 32, 80, 0), 1);
    oos_backend_choice const choice = choose(&f);
    assert_non_null(choice.reason);
    assert_non_null(strstr(choice.reason, "head size 80"));
    assert_non_null(strstr(choice.reason, "FLASH_ATTN"));
    assert_false(choice.full_graphs);
    fixture_free(&f);
}

static void flashinfer_records_drafts_only_with_its_newer_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        unsigned capability;
        bool drafts, full;
    } cases[] = {{"0.19.1", 120, false, true}, {"0.19.1", 120, true, false}, {"0.28.0", 120, true, true},
                 {"0.28.0", 90, true, false},  {"0.30.0", 90, true, true},   {"0.19.1", 100, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, cases[i].capability);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 1);
        f.serve.attention_backend = "FLASHINFER";
        f.serve.speculative.present = cases[i].drafts;
        f.serve.speculative.method = "ngram";
        f.serve.speculative.tokens = oos_u64_of(3);
        oos_backend_choice const choice = choose(&f);
        assert_string_equal(choice.name, "FLASHINFER");
        assert_int_equal(choice.full_graphs, cases[i].full);
        fixture_free(&f);
    }
}

static void the_preferred_backend_needs_no_reason(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 1);
    oos_backend_choice const choice = choose(&f);
    assert_string_equal(choice.name, "FLASH_ATTN");
    assert_null(choice.reason);
    assert_false(choice.refused);
    fixture_free(&f);
}

static void blackwell_prefers_flashinfer(void **state)
{
    (void)state;
    chooses("0.9.0", 100, 128, NULL, "FLASH_ATTN");
    chooses("0.9.1", 100, 128, NULL, "FLASHINFER");
    chooses("0.32.0", 100, 128, NULL, "FLASHINFER");
    chooses("0.32.0", 120, 128, NULL, "FLASH_ATTN");
    chooses("0.32.0", 100, 80, NULL, "FLASH_ATTN");
}

static void an_fp8_cache_follows_the_generations_of_flash_attention(void **state)
{
    (void)state;
    chooses("0.11.0", 80, 128, "fp8", NULL); /* its kernel does not compile before 8.9 */
    chooses("0.11.0", 89, 128, "fp8", "TRITON_ATTN");
    chooses("0.11.0", 90, 128, "fp8", "FLASH_ATTN");
    chooses("0.19.1", 86, 128, "fp8", "FLASHINFER");
    chooses("0.19.1", 90, 128, "fp8_e5m2", "FLASH_ATTN");
    chooses("0.32.0", 90, 128, "fp8_e5m2", "FLASHINFER");
    chooses("0.32.0", 100, 80, "fp8", "FLASH_ATTN");
    chooses("0.32.0", 100, 160, "fp8", "TRITON_ATTN");
}

static void old_devices_start_the_old_engine_until_0_10_2(void **state)
{
    (void)state;
    chooses("0.9.2", 75, 128, NULL, "XFORMERS");
    chooses("0.11.0", 75, 128, NULL, "FLEX_ATTENTION");
    chooses("0.12.0", 75, 128, NULL, "FLASHINFER");
    chooses("0.32.0", 75, 128, NULL, "TRITON_ATTN");
}

static void a_type_nobody_reads_is_refused(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 80, 0), 1);
    f.serve.kv_cache_dtype = "nvfp4";
    oos_backend_choice const choice = choose(&f);
    assert_true(choice.refused);
    assert_null(choice.name);
    assert_non_null(strstr(choice.reason, "No valid attention backend"));
    fixture_free(&f);
}

static void names_of_older_releases_are_understood(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.10.2", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 1);
    f.env.attention_backend = "TRITON_ATTN_VLLM_V1";
    oos_backend_choice const choice = choose(&f);
    assert_string_equal(choice.name, "TRITON_ATTN");
    assert_true(choice.forced);
    fixture_free(&f);
}

static void a_forced_backend_that_does_not_fit_is_refused_in_the_engines_words(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.19.1", 80);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 80, 0), 1);
    f.serve.attention_backend = "FLASHINFER";
    oos_backend_choice const choice = choose(&f);
    assert_true(choice.refused);
    assert_string_equal(choice.reason,
                        "Selected backend AttentionBackendEnum.FLASHINFER is not valid for this "
                        "configuration. Reason: ['head_size not supported']");
    fixture_free(&f);
}

static oos_attention latent(void)
{
    return (oos_attention){.mixer = OOS_MIXER_MLA,
                           .heads = 128,
                           .kv_heads = 1,
                           .head_dim = 576,
                           .kv_lora_rank = 512,
                           .rope_dim = 64,
                           .nope_dim = 128,
                           .value_dim = 128};
}

static void latent_chooses(const char *version, unsigned capability, const char *kv, const char *expected,
                           uint64_t block)
{
    fixture f;
    fixture_init(&f, version, capability);
    fixture_layers(&f, latent(), 1);
    f.serve.kv_cache_dtype = kv;
    oos_backend_choice const choice = choose(&f);
    assert_string_equal(choice.name, expected);
    assert_int_equal(choice.preferred_block, block);
    fixture_free(&f);
}

static void latent_attention_takes_the_block_size_its_kernel_reads(void **state)
{
    (void)state;
    latent_chooses("0.9.2", 90, NULL, "FLASHMLA", 64);
    latent_chooses("0.9.2", 80, NULL, "TRITON_MLA", 0);
    latent_chooses("0.11.0", 100, NULL, "CUTLASS_MLA", 128);
    latent_chooses("0.13.0", 90, NULL, "FLASH_ATTN_MLA", 64);
    latent_chooses("0.16.0", 100, NULL, "FLASHINFER_MLA", 64);
    latent_chooses("0.32.0", 90, NULL, "FLASH_ATTN_MLA", 0);
    latent_chooses("0.32.0", 90, "fp8", "FLASHMLA", 64);
    latent_chooses("0.32.0", 100, NULL, "FLASHINFER_MLA", 32);
    latent_chooses("0.32.0", 120, NULL, "TRITON_MLA", 0);
}

static void sparse_kernels_store_their_own_fp8_layout(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.20.0", 90);
    oos_attention sparse = latent();
    sparse.indexer_dim = 128, sparse.indexer_topk = 2048;
    fixture_layers(&f, sparse, 1);
    f.model.sparse = true;
    f.serve.kv_cache_dtype = "fp8";
    oos_backend_choice const choice = choose(&f);
    assert_string_equal(choice.name, "FLASHMLA_SPARSE");
    assert_int_equal(choice.kv_dtype, OOS_KV_FP8_DS_MLA);
    fixture_free(&f);
}

static void image_masks_need_triton_or_a_pair(void **state)
{
    (void)state;
    static const struct {
        const char *version, *expected;
        uint64_t head;
    } cases[] = {{"0.12.0", "FLASH_ATTN", 256},
                 {"0.19.1", "TRITON_ATTN", 256},
                 {"0.32.0", "TRITON_FLASH_ATTN", 256},
                 {"0.32.0", "TRITON_ATTN", 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 16, 8, cases[i].head, 0), 1);
        f.model.multimodal = f.model.bidirectional_images = true;
        assert_string_equal(choose(&f).name, cases[i].expected);
        if (i == 2) { /* of text alone any will do */
            f.model.multimodal = false;
            assert_string_equal(choose(&f).name, "FLASH_ATTN");
        }
        fixture_free(&f);
    }
}

static void sinks_leave_flash_attention_2_out(void **state)
{
    (void)state;
    for (unsigned capability = 80; capability <= 90; capability += 10) {
        fixture f;
        fixture_init(&f, "0.32.0", capability);
        oos_attention sinks = heads_of(OOS_MIXER_FULL, 64, 8, 64, 0);
        sinks.sinks = true;
        fixture_layers(&f, sinks, 1);
        assert_string_equal(choose(&f).name, capability == 80 ? "TRITON_ATTN" : "FLASH_ATTN");
        fixture_free(&f);
    }
}

static void flashinfers_workspace_grows_with_the_batch_since_0_26(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        uint64_t bytes;
    } cases[] = {{"0.10.2", 256 * OOS_MIB}, {"0.25.0", 394 * OOS_MIB}, {"0.26.0", OOS_GIB}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 64, 8, 128, 0), 1);
        f.serve.attention_backend = "FLASHINFER";
        f.serve.max_num_batched_tokens = oos_u64_of(8192);
        assert_true(choose(&f).workspace_bytes == cases[i].bytes);
        fixture_free(&f);
    }
}

/* 16 segments of 32 heads, each 128 wide with a maximum and a sum: for 128 / 8 sequences to 0.32, then for as many as may run and each token
 * of a verification, up to eight. */
static void partial_softmax_has_a_row_for_each_token_that_is_verified(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        uint64_t seqs, drafts, rows;
    } cases[] = {{"0.32.0", 4, 0, 16}, {"0.32.0", 4, 3, 16},   {"0.33.0", 4, 0, 4},
                 {"0.33.0", 4, 3, 16}, {"0.33.0", 256, 3, 64}, {"0.33.0", 256, 20, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 1);
        f.serve.attention_backend = "TRITON_ATTN";
        f.serve.enforce_eager = (oos_flag){true, true};
        f.serve.max_num_seqs = oos_u64_of(cases[i].seqs);
        if (cases[i].drafts)
            f.serve.speculative =
                (oos_speculative){.present = true, .method = "ngram", .tokens = oos_u64_of(cases[i].drafts)};
        assert_int_equal(choose(&f).workspace_bytes, cases[i].rows * 32 * 16 * (128 + 2) * 4);
        fixture_free(&f);
    }
}

static void latent_prefill_keeps_room_for_a_context(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.19.1", 90);
    fixture_layers(&f, latent(), 1);
    f.serve.max_model_len = oos_u64_of(32768);
    f.serve.max_num_seqs = oos_u64_of(256);
    assert_true(choose(&f).workspace_bytes == 65536ull * 576 * 2 + 128 * OOS_MIB);
    fixture_free(&f);
}

/* ---- tests/rules/backends.tsv: what the engine's own classes choose (tests/oracle/backends.py) ------------------ */

enum { CELL_FIELDS = 9 };

typedef struct cell {
    char *
        fields[CELL_FIELDS]; /* release, kind, dtype, kv, head, latent dimensions, block, features, choices */
} cell;

static bool cell_read(char *line, cell *ret_cell)
{
    char *rest = line;
    for (size_t i = 0; i < CELL_FIELDS; i++) ret_cell->fields[i] = strsep(&rest, "\t\n");
    return ret_cell->fields[CELL_FIELDS - 1];
}

static void cell_ask(fixture *f, const cell *c, unsigned capability, const oos_rule_book *book,
                     oos_backend_choice *ret_choice)
{
    bool const mla = strstr(c->fields[1], "mla"), sparse = strncmp(c->fields[1], "sparse", 6) == 0;
    oomsight_error error = {0};
    bool beyond;
    oos_attention attention =
        heads_of(strstr(c->fields[7], "sliding") ? OOS_MIXER_SLIDING : OOS_MIXER_FULL, 32, 8,
                 strtoull(c->fields[4], NULL, 10), strstr(c->fields[7], "sliding") ? 1024 : 0);
    attention.sinks = strstr(c->fields[7], "sinks");
    if (mla) {
        unsigned long long rank, nope, rope, value;
        assert_int_equal(sscanf(c->fields[5], "%llu/%llu/%llu/%llu", &rank, &nope, &rope, &value), 4);
        attention = (oos_attention){.mixer = OOS_MIXER_MLA,
                                    .heads = 32,
                                    .kv_heads = 1,
                                    .head_dim = rank + rope,
                                    .kv_lora_rank = rank,
                                    .rope_dim = rope,
                                    .nope_dim = nope,
                                    .value_dim = value,
                                    .indexer_topk = sparse ? 2048 : 0};
    }
    f->device.capability = capability;
    f->model.sparse = sparse;
    f->model.multimodal = f->model.bidirectional_images = strstr(c->fields[7], "mm_prefix");
    f->model.dtype = oos_dtype_find(c->fields[2]);
    f->model.attention_count = f->model.layer_count = 0;
    fixture_layers(f, attention, 1);
    f->serve = (oos_serve){.dtype = c->fields[2], .kv_cache_dtype = c->fields[3]};
    if (*c->fields[6] != '-') f->serve.block_size = oos_u64_of(strtoull(c->fields[6], NULL, 10));
    assert_int_equal(
        oos_vllm_rules_of((oos_rule_book *)book, version_of(c->fields[0]), &f->rules, &beyond, &error),
        OOMSIGHT_OK);
    fixture_setup(f);
    f->setup.dtype = f->model.dtype; /* as the cell says, whatever the device makes of it */
    assert_int_equal(oos_backend_choose(f->arena, &f->setup, &f->attentions[0], ret_choice, &error),
                     OOMSIGHT_OK);
}

static void every_cell_is_chosen_as_by_the_engines_classes(void **state)
{
    (void)state;
    static const unsigned capabilities[] = {70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    char path[4096], line[1024];
    snprintf(path, sizeof path, "%s/../rules/backends.tsv", getenv("OOMSIGHT_FIXTURES"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fixture f;
    oos_rule_book *book;
    oomsight_error error = {0};
    fixture_init(&f, "0.32.0", 90);
    assert_int_equal(oos_vllm_book_load(f.arena, NULL, &book, &error), OOMSIGHT_OK);
    size_t cells = 0, different = 0;
    while (fgets(line, sizeof line, file)) {
        cell c;
        assert_true(cell_read(line, &c));
        const char *said = c.fields[8];
        char expected[64] = "";
        for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++, cells++) {
            unsigned at;
            if (sscanf(said, "%u:", &at) == 1 && at == capabilities[i]) {
                assert_int_equal(sscanf(said, "%u:%63s", &at, expected), 2);
                said += strcspn(said, " ");
                said += *said == ' ';
            }
            oos_backend_choice choice;
            cell_ask(&f, &c, capabilities[i], book, &choice);
            bool const refused = strchr("-!~", *expected);
            if (refused ? choice.refused : choice.name && strcmp(choice.name, expected) == 0) continue;
            if (different++ < 20)
                print_message("%s %s %s %s head %s %s block %s %s on %u: %s, the engine %s\n", c.fields[0],
                              c.fields[1], c.fields[2], c.fields[3], c.fields[4], c.fields[5], c.fields[6],
                              c.fields[7], capabilities[i], choice.name ? choice.name : choice.reason,
                              expected);
        }
    }
    fclose(file);
    fixture_free(&f);
    assert_true(cells > 10000);
    print_message("%zu cells, %zu different\n", cells, different);
    assert_int_equal(different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_softmax_has_a_row_for_each_token_that_is_verified),
        cmocka_unit_test(every_cell_is_chosen_as_by_the_engines_classes),
        cmocka_unit_test(head_size_80_goes_where_each_release_sends_it),
        cmocka_unit_test(the_reason_names_the_head_size),
        cmocka_unit_test(flashinfer_records_drafts_only_with_its_newer_kernels),
        cmocka_unit_test(the_preferred_backend_needs_no_reason),
        cmocka_unit_test(blackwell_prefers_flashinfer),
        cmocka_unit_test(an_fp8_cache_follows_the_generations_of_flash_attention),
        cmocka_unit_test(old_devices_start_the_old_engine_until_0_10_2),
        cmocka_unit_test(a_type_nobody_reads_is_refused),
        cmocka_unit_test(names_of_older_releases_are_understood),
        cmocka_unit_test(a_forced_backend_that_does_not_fit_is_refused_in_the_engines_words),
        cmocka_unit_test(latent_attention_takes_the_block_size_its_kernel_reads),
        cmocka_unit_test(sparse_kernels_store_their_own_fp8_layout),
        cmocka_unit_test(image_masks_need_triton_or_a_pair),
        cmocka_unit_test(sinks_leave_flash_attention_2_out),
        cmocka_unit_test(flashinfers_workspace_grows_with_the_batch_since_0_26),
        cmocka_unit_test(latent_prefill_keeps_room_for_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
