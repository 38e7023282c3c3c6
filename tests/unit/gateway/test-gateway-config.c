/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/gateway-config.h"

#include "test.h"
#include "util/file.h"
#include "util/macro.h"

/* The words that gateway.conf may hold, what is said of all others, and what a reload compares. */

typedef struct Problems {
    unsigned n;
    unsigned line;
    char last[512];
    bool has_secret;
} Problems;

static void note(void *userdata, const char *path _unused_, unsigned line, const char *problem) {
    Problems *p = userdata;

    p->n++;
    p->line = line;
    p->has_secret |= strstr(problem, "secret") != NULL;
    snprintf(p->last, sizeof(p->last), "%s", problem);
}

/* Loads text as a file. */
static int load(const char *text, GatewayConfig **ret, Problems *ret_problems) {
    char path[] = "/tmp/test-gateway-config-XXXXXX";
    _cleanup_close_ int fd = mkstemp(path);
    int r;

    *ret_problems = (Problems){};
    *ret = gateway_config_free(*ret);
    r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
    if (r == 0)
        r = gateway_config_load("", path, NULL, note, ret_problems, ret);
    (void)unlink(path);
    return r;
}

#define SEND(name) "[Send " name "]\nType=pyroscope\nURL=http://127.0.0.1:4040\n"

TEST(without_a_line_every_key_has_its_default) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load("", &config, &problems), 0);
    CHECK_EQ(config->interval_ns, (uint64_t)10000000000);
    CHECK_STREQ(config->session, "default");
    CHECK_STREQ(config->socket, "");
    CHECK_STREQ(config->listen_socket, "http");
    CHECK_STREQ(config->listen_address, "");
    CHECK(!config->inlines && *config->host);
    CHECK_EQ(config->n_sends + config->n_rules, (size_t)0);
}

TEST(a_destination_has_what_is_written_and_defaults) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    const SendConfig *send;
    Problems problems;

    CHECK_EQ(load(SEND("a.b-c_1") "Share=25%\nMaxAgeSec=1h\nTenant=team one\nCompress=no\n"
                                  "MaxBodySize=4M\nMaxBytesPerSec=512K\nTimeoutSec=5s\n",
                  &config, &problems),
             0);
    send = gateway_config_send(config, "a.b-c_1");
    CHECK(send && !gateway_config_send(config, "a"));
    CHECK_STREQ(send->type, "pyroscope");
    CHECK_STREQ(send->url, "http://127.0.0.1:4040");
    CHECK_STREQ(send->tenant, "team one");
    CHECK_EQ(send->share_percent, 25U);
    CHECK_EQ(send->max_age_ns, (uint64_t)3600000000000);
    CHECK_EQ(send->max_body_bytes, (uint64_t)4 << 20);
    CHECK_EQ(send->max_bytes_per_sec, (uint64_t)512 << 10);
    CHECK_EQ(send->timeout_ns, (uint64_t)5000000000);
    CHECK_EQ(send->max_series, 500U);
    CHECK_EQ(send->max_label_values, 300U);
    CHECK(!send->compress);
}

TEST(each_invalid_value_is_one_problem_at_its_line_and_leaves_the_default) {
    static const struct {
        const char *line;
        int problems;
    } rows[] = {
        {"URL=ftp://host", 1},
        {"URL=http://", 1},
        {"URL=http://user:secret@host", 1},
        {"URL=http://ho st", 1},
        {"URL=relative/path", 1},
        {"Share=0%", 1},
        {"Share=101%", 1},
        {"Share=50", 1},
        {"TimeoutSec=1ms", 1},
        {"MaxSeries=0", 1},
        {"MaxLabelValues=0", 1},
        {"MaxBodySize=1", 1},
        {"CAFile=ca.pem", 1},
        {"Credential=../token", 1},
        {"Content=tea", 1},
        {"Tenant=\xff", 1},
        {"Tenant=a\x1b[2Jb", 1},
        {"Compress=maybe", 1},
        {"Sharee=5%", 1},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
        Problems problems;
        char text[256];

        snprintf(text, sizeof(text), SEND("x") "%s\n", rows[i].line);
        CHECK_EQ(load(text, &config, &problems), rows[i].problems);
        CHECK_EQ(problems.line, 4U);
        CHECK_EQ(config->n_sends, (size_t)1);
        CHECK_EQ(config->sends[0].share_percent, 100U);
    }
}

TEST(a_problem_says_what_the_key_takes_or_where_it_belongs) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Gateway]\nIntervalSec=1ms\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "IntervalSec=1ms is out of range: it takes a time span from 1s to "
                               "10min, such as 10s");
    CHECK_EQ(load("[Gateway]\nURL=http://a\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "URL= is no key of [Gateway]: it belongs in [Send NAME]");
    CHECK_EQ(load("[Gateway]\nIntervallSec=1s\n", &config, &problems), 1);
    CHECK_STREQ(problems.last,
                "There is no key IntervallSec= in [Gateway]: did you mean IntervalSec=?");
    CHECK_EQ(load("[Profd]\nURL=x\n", &config, &problems), 1);
    CHECK_EQ(load("[Send a/b]\nURL=x\n", &config, &problems), 1);
    CHECK_EQ(load("[Send]\nURL=x\n", &config, &problems), 1);
    CHECK_EQ(load("[Gateway\nHost=x\n", &config, &problems), 1);
    CHECK_EQ(load("Host=x\n", &config, &problems), 1);
}

TEST(a_problem_never_holds_what_may_be_a_password) {
    static const char *const lines[] = {
        "Proxy=http://user:secret@proxy:3128",
        "URL=https://user:secret@host",
        "URL=http://host/?token=secret",
        "TokenFile=glsa_secret",
        "PasswordFile=user:secret",
        "Credential=user/secret",
        "KeyFile=secret",
        "[Listen]\nTokenFile=glsa_secret",
        "[Listen]\nKeyFile=secret",
        "Authorization=Bearer secret",
        "http://user:secret@host",
        "secret",
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
        Problems problems;
        char text[256];

        snprintf(text, sizeof(text), SEND("x") "%s\n", lines[i]);
        CHECK(load(text, &config, &problems) > 0);
        CHECK(!problems.has_secret);
        if (i == 0)
            CHECK_STREQ(problems.last,
                        "Proxy= is not understood: it takes http:// or https:// with a host");
    }
}

TEST(an_age_that_leaves_no_time_for_another_attempt_is_a_problem) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(SEND("a") "MaxAgeSec=29s\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 4U);
    CHECK(strstr(problems.last, "less than three times IntervalSec="));
    CHECK_EQ(load(SEND("a") "MaxAgeSec=30s\n", &config, &problems), 0);
    CHECK_EQ(load(SEND("a") "MaxAgeSec=30s\n[Gateway]\nIntervalSec=11s\n", &config, &problems), 1);
    CHECK_EQ(load("[Send a]\nType=s3\nURL=http://a/b\nMaxAgeSec=10s\n", &config, &problems), 0);
}

TEST(a_destination_without_type_or_url_is_left_out_and_others_stay) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Send a]\nURL=http://a\n" SEND("b") "[Send c]\nType=otlp\n", &config, &problems),
             2);
    CHECK_EQ(config->n_sends, (size_t)1);
    CHECK_STREQ(config->sends[0].name, "b");
    CHECK_EQ(load("[Send f]\nType=file\nURL=http://a\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 3U);
    CHECK_EQ(load("[Send f]\nType=file\nURL=/var/tmp/x\n", &config, &problems), 0);
    CHECK_EQ(load("[Send p]\nType=parca\nURL=/var/tmp/x\n", &config, &problems), 1);
}

TEST(there_is_a_limit_of_destinations_and_of_rules) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    _cleanup_free_ char *text = calloc(1, 1 << 16);
    Problems problems;
    size_t n = 0;

    CHECK(text);
    for (unsigned i = 0; i <= GATEWAY_SENDS_MAX; i++)
        n += (size_t)sprintf(text + n, "[Send s%u]\nType=otlp\nURL=http://a\n", i);
    for (unsigned i = 0; i < GATEWAY_RULES_MAX; i++)
        n += (size_t)sprintf(text + n, "[Relabel r%u]\nTargetLabel=a\n", i);
    CHECK_EQ(load(text, &config, &problems), 1);
    CHECK_EQ(config->n_sends, (size_t)GATEWAY_SENDS_MAX);
    CHECK_EQ(config->n_rules, (size_t)GATEWAY_RULES_MAX);
    strcpy(text + n, "[Relabel more]\nTargetLabel=a\n");
    CHECK_EQ(load(text, &config, &problems), 2 + GATEWAY_SENDS_MAX);
    CHECK_EQ(config->n_sends, (size_t)0);
}

TEST(keys_that_do_not_go_together_are_reported) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(SEND("a") "TokenFile=/a\nPasswordFile=/b\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 5U);
    CHECK_EQ(load(SEND("a") "CAFile=/a\n", &config, &problems), 1);
    CHECK_EQ(load("[Send a]\nType=otlp\nURL=https://a\nKeyFile=/a\n", &config, &problems), 1);
    CHECK_EQ(load(SEND("a") "Region=x\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "Region= is for Type=s3 alone");
    CHECK_EQ(load(SEND("a") "Content=recordings\n", &config, &problems), 1);
    CHECK_STREQ(problems.last, "Content= is for Type=s3 and Type=file alone");
    CHECK_EQ(load("[Send a]\nType=file\nURL=/a\nObjectIntervalSec=1h\n", &config, &problems), 1);
    CHECK_STREQ(problems.last,
                "ObjectIntervalSec= is for recordings and snapshots alone, see Content=");
}

TEST(folder_takes_recordings_if_it_is_said) {
    const char *const text = "[Send a]\nType=file\nURL=/a\nContent=recordings\n"
                             "ObjectIntervalSec=1h\nKeyTemplate=%T\n"
                             "[Send b]\nType=file\nURL=/b\n";
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(text, &config, &problems), 0);
    CHECK_EQ(config->n_sends, (size_t)2);
    CHECK(gateway_send_keeps_recordings(&config->sends[0]));
    CHECK(!gateway_send_keeps_recordings(&config->sends[1]));
}

TEST(an_address_that_others_reach_needs_tls_and_a_token) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load("[Listen]\nAddress=127.0.0.1:9137\n", &config, &problems), 0);
    CHECK_EQ(load("[Listen]\nAddress=[::1]:9137\n", &config, &problems), 0);
    CHECK_EQ(load("[Listen]\nAddress=0.0.0.0:9137\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 2U);
    CHECK_EQ(load("[Listen]\nAddress=[::]:9137\nTokenFile=/t\n", &config, &problems), 1);
    CHECK_EQ(load("[Listen]\nAddress=[::]:1\nTokenFile=/t\nCertificateFile=/c\nKeyFile=/k\n",
                  &config, &problems),
             0);
    CHECK_EQ(load("[Listen]\nCertificateFile=/c\n", &config, &problems), 1);
    CHECK_EQ(load("[Listen]\nAddress=localhost:1\n", &config, &problems), 1);
    CHECK_EQ(load("[Listen]\nAddress=127.0.0.1:65536\n", &config, &problems), 1);
    CHECK_EQ(load("[Listen]\nAddress=127.0.0.1\n", &config, &problems), 1);
    CHECK_EQ(load("[Listen]\nSocket=none\nAddress=none\n", &config, &problems), 0);
    CHECK_STREQ(config->listen_socket, "");
    CHECK_EQ(load("[Listen]\nSocket=../x\n", &config, &problems), 1);
}

TEST(rules_stand_in_the_order_of_their_headings_and_apply_where_they_say) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(SEND("a")
                      SEND("b") "[Relabel z]\nAction=drop\nSourceLabels=unit\nRegex=x.*\n"
                                "Sends=b\n[Relabel c]\nTargetLabel=dc\nReplacement=\"eu 1\"\n",
                  &config, &problems),
             0);
    CHECK_EQ(config->n_rules, (size_t)2);
    CHECK_STREQ(config->rules[0].name, "z");
    CHECK(config->rules[0].rule && config->rules[1].rule);
    CHECK_STREQ(config->rules[1].replacement, "eu 1");
    CHECK(!gateway_rule_is_for(&config->rules[0], "a"));
    CHECK(gateway_rule_is_for(&config->rules[0], "b"));
    CHECK(gateway_rule_is_for(&config->rules[1], "a") &&
          gateway_rule_is_for(&config->rules[1], "b"));
    CHECK_EQ(load(SEND("a") "[Relabel z]\nTargetLabel=x\nSends=a,nobody\n", &config, &problems), 1);
    CHECK_EQ(problems.line, 6U);
    CHECK_EQ(config->n_sends, (size_t)1);
}

TEST(a_destination_whose_rule_is_not_understood_is_left_out) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(SEND("a") SEND("b") "[Relabel bad]\nAction=drop\nSourceLabels=unit\nRegex=(\n"
                                      "Sends=b\n",
                  &config, &problems),
             2);
    CHECK_EQ(config->n_sends, (size_t)1);
    CHECK_STREQ(config->sends[0].name, "a");
    CHECK_EQ(config->n_rules, (size_t)0);
    CHECK_EQ(load(SEND("a") "[Relabel typo]\nAction=drop\nSourceLabel=unit\n", &config, &problems),
             3);
    CHECK_EQ(config->n_sends, (size_t)0);
}

TEST(nothing_is_sent_while_a_line_that_may_be_of_a_rule_is_not_understood) {
    static const char *const lines[] = {
        "[Relabel no secrets]", "[Relabel]",  "[Relabel x",
        "[Relable x]",          "Relabel x]", "[Relabel x]\nTargetLabel=a\nAction",
    };

    for (size_t i = 0; i <= ARRAY_SIZE(lines); i++) {
        _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
        Problems problems;
        char text[1024], regex[256] = "[Relabel x]\nTargetLabel=a\nRegex=";

        memset(regex + strlen(regex), 'x', 200);
        snprintf(text, sizeof(text), SEND("a") SEND("b") "%s\n",
                 i < ARRAY_SIZE(lines) ? lines[i] : regex);
        CHECK_EQ(load(text, &config, &problems), 3);
        CHECK_EQ(config->n_sends, (size_t)0);
        CHECK(strstr(problems.last, "is left out, because line "));
    }
}

TEST(a_rule_for_a_destination_that_does_not_exist_may_be_for_any_that_it_does_not_name) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    Problems problems;

    CHECK_EQ(load(SEND("a") SEND("b") "[Relabel x]\nAction=drop\nSourceLabels=unit\nSends=a bee\n",
                  &config, &problems),
             2);
    CHECK_EQ(config->n_sends, (size_t)1);
    CHECK_STREQ(config->sends[0].name, "a");
    CHECK_EQ(config->n_rules, (size_t)1);
}

TEST(a_reload_finds_what_changed_of_a_destination) {
    static const struct {
        const char *before, *after;
        bool is_same;
    } rows[] = {
        {SEND("a"), SEND("a"), true},
        {SEND("a"), SEND("a") "Share=100%\n", true},
        {SEND("a"), SEND("a") "Share=50%\n", false},
        {SEND("a"), SEND("a") SEND("b") "Share=50%\n", true},
        {SEND("b") SEND("a"), SEND("a"), true},
        {SEND("a"), SEND("a") "[Relabel r]\nTargetLabel=x\nSends=a\n", false},
        {SEND("a") SEND("b"), SEND("a") SEND("b") "[Relabel r]\nTargetLabel=x\nSends=b\n", true},
        {SEND("a") "[Relabel r]\nTargetLabel=x\n", SEND("a") "[Relabel r]\nTargetLabel=y\n", false},
        {SEND("a") "[Relabel r]\nTargetLabel=x\n", SEND("a") "[Relabel r]\nTargetLabel=x\n", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(gateway_config_freep) GatewayConfig *before = NULL, *after = NULL;
        Problems problems;

        CHECK_EQ(load(rows[i].before, &before, &problems), 0);
        CHECK_EQ(load(rows[i].after, &after, &problems), 0);
        CHECK_EQ(gateway_config_same_send(before, after, "a"), rows[i].is_same);
        CHECK_EQ(gateway_config_same_send(after, before, "a"), rows[i].is_same);
        CHECK(gateway_config_same_source(before, after));
    }
}

TEST(a_reload_tells_source_and_listener_apart) {
    _cleanup_(gateway_config_freep) GatewayConfig *a = NULL, *b = NULL;
    Problems problems;

    CHECK_EQ(load("[Gateway]\nHost=x\n", &a, &problems), 0);
    CHECK_EQ(load("[Gateway]\nHost=x\n[Listen]\nAddress=127.0.0.1:1\n", &b, &problems), 0);
    CHECK(gateway_config_same_source(a, b) && !gateway_config_same_listen(a, b));
    CHECK_EQ(load("[Gateway]\nHost=y\n", &b, &problems), 0);
    CHECK(!gateway_config_same_source(a, b) && gateway_config_same_listen(a, b));
}

TEST(every_default_of_the_table_is_accepted_by_its_own_parser) {
    ConfigTable table = gateway_config_table();

    for (size_t i = 0; i < table.n; i++) {
        _cleanup_free_ char *base = calloc(1, sizeof(GatewayConfig));

        CHECK(base && *table.keys[i].expected);
        CHECK_EQ(table.keys[i].parse(&table.keys[i], table.keys[i].fallback, base), 0);
    }
}

TEST_MAIN()
