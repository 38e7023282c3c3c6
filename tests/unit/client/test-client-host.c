/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/host/host-words.h"

#include "client/frame/command.h"
#include "client/frame/shell.h"
#include "client/host/host-print.h"
#include "test.h"
#include "util/text.h"

/* The hosts that -H accepts, the command line that it leaves, and the treatment of what hosts say.
 */

static const Option rows[] = {
    {'H', "host", "HOST,…", "H", option_hosts, 0},
    {'q', "quiet", NULL, "Q", option_flag, sizeof(OptionHosts)},
    {'n', "name", "NAME", "N", option_string, sizeof(OptionHosts) + 8},
    {},
};

typedef struct Settings {
    OptionHosts hosts;
    bool quiet;
    const char *name;
} Settings;

/* The text that is sent over for the words of a line, which single spaces separate; to be freed. */
static char *sent_for(const char *line, size_t *ret_n) {
    char *text = strdup(line), *argv[16], *copy[16], *save = NULL, *why = NULL;
    int argc = 0, index = 1, n = 0;
    Settings settings = {};
    Buffer out = {};

    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    memcpy(copy, argv, sizeof(copy));
    if (options_parse(&(OptionSet){rows, &settings}, 1, false, argc, argv, &index, &n, &why) < 0)
        text_puts(&out, "refused");
    else
        host_quote_words(&out, &settings.hosts, argc, copy);
    text_putc(&out, '\0');
    *ret_n = settings.hosts.n;
    option_hosts_done(&settings.hosts);
    free(why);
    free(text);
    return (char *)out.data;
}

TEST(the_host_option_is_removed_however_it_is_written) {
    static const struct {
        const char *line, *sent;
        size_t n;
    } lines[] = {
        {"profctl -H a status", " status", 1},
        {"profctl status -H a,b", " status", 2},
        {"profctl status -Ha,root@b -q", " status -q", 2},
        {"profctl -qHa status", " -q status", 1},
        {"profctl -qH a status", " -q status", 1},
        {"profctl --host a --host=b status", " status", 2},
        {"profctl --host a -n -H status", " -n -H status", 1},
        {"profctl -H a --name=-H x", " --name=-H x", 1},
        {"profctl -H a -- -H b", " -- -H b", 1},
        {"profctl -H a status a", " status a", 1},
        {"profctl -H fe80::1%eth0,user@[::1] status", " status", 2},
        {"profctl -H a,,b status", "refused", 1},
        {"profctl -H -oProxyCommand=x status", "refused", 0},
        {"profctl -H $(reboot) status", "refused", 0},
        {"profctl --host= status", "refused", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        size_t n = 0;
        char *sent = sent_for(lines[i].line, &n);

        CHECK_STREQ(sent, lines[i].sent);
        CHECK_EQ(n, lines[i].n);
        free(sent);
    }
}

TEST(a_remote_shell_reads_the_words_unchanged) {
    static const char *const words[] = {"plain", "two words", "it's", "$HOME `id` \\",
                                        "",      "a\nb",      "*"};
    Buffer line = {};
    char said[256];
    size_t n = 0;
    FILE *f;

    text_puts(&line, "printf '<%s>'");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        text_putc(&line, ' ');
        shell_put_word(&line, words[i], strlen(words[i]));
    }
    text_putc(&line, '\0');
    f = popen((char *)line.data, "r");
    CHECK(f);
    n = fread(said, 1, sizeof(said) - 1, f);
    said[n] = '\0';
    pclose(f);
    CHECK_STREQ(said, "<plain><two words><it's><$HOME `id` \\><><a\nb><*>");
    buffer_done(&line);
}

TEST(the_worst_status_wins) {
    CHECK_EQ(host_worse(0, 0), 0);
    CHECK_EQ(host_worse(0, 8), 8);
    CHECK_EQ(host_worse(8, 7), 7);
    CHECK_EQ(host_worse(3, 1), 1);
    CHECK_EQ(host_worse(1, 255), 255);
    CHECK_EQ(host_worse(255, 0), 255);
    CHECK_EQ(host_known_status(127), 1);
    CHECK_EQ(host_known_status(255), 255);
    CHECK_EQ(host_known_status(8), 8);
}

/* The output when a host says `said` and ends. */
static char *printed(JsonMode json, const char *said, size_t n, int *ret_r) {
    Context c = {.json = json};
    HostLines lines = {.host = "web1", .width = 5};

    buffer_append(&lines.held, said, n);
    *ret_r = host_print_lines(&c, &lines, true, false);
    host_lines_done(&lines);
    text_putc(&c.out.buffer, '\0');
    return (char *)c.out.buffer.data;
}

TEST(lines_have_the_name_of_their_host_and_are_escaped) {
    static const char said[] = "one\n\x1b[2Jtwo \\x1b\n\nlast";
    int r;
    char *out = printed(JSON_OFF, said, sizeof(said) - 1, &r);

    CHECK_EQ(r, 0);
    CHECK_STREQ(out, "web1:  one\nweb1:  \\x1b[2Jtwo \\x1b\nweb1:  \nweb1:  last\n");
    free(out);
}

TEST(json_becomes_one_object_for_each_host) {
    static const char said[] = "{\"a\":[1,\"\\u001b[2J\"]}\n\n\"x\"\n";
    int r;
    char *out = printed(JSON_SHORT, said, sizeof(said) - 1, &r);

    CHECK_EQ(r, 0);
    CHECK_STREQ(out, "{\"host\":\"web1\",\"result\":{\"a\":[1,\"\\\\x1b[2J\"]}}\n"
                     "{\"host\":\"web1\",\"result\":\"x\"}\n");
    free(out);
}

TEST(invalid_json_is_refused) {
    static const char *const bad[] = {"hello\n", "{\"a\":1,\"a\":2}\n", "{}{}\n", "[\n"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int r;

        free(printed(JSON_SHORT, bad[i], strlen(bad[i]), &r));
        CHECK_EQ(r, -EBADMSG);
    }
}

TEST(a_partial_line_waits_for_its_rest) {
    HostLines lines = {.host = "a", .width = 1};
    Context c = {};

    buffer_append(&lines.held, "ha", 2);
    CHECK_OK(host_print_lines(&c, &lines, false, false));
    CHECK_EQ(c.out.buffer.size, (size_t)0);
    buffer_append(&lines.held, "lf\nnext", 7);
    CHECK_OK(host_print_lines(&c, &lines, false, false));
    text_putc(&c.out.buffer, '\0');
    CHECK_STREQ((char *)c.out.buffer.data, "a: half\n");
    CHECK_EQ(lines.held.size, (size_t)4);
    host_lines_done(&lines);
    buffer_done(&c.out.buffer);
}

TEST(an_endless_line_is_split) {
    size_t n = 200000;
    char *said = malloc(n), *out;
    int r;

    memset(said, 'x', n);
    out = printed(JSON_OFF, said, n, &r);
    free(said);
    CHECK_EQ(r, 0);
    CHECK_EQ(strlen(out), n + 4 * (strlen("web1:  ") + 1));
    free(out);
}

TEST_MAIN()
