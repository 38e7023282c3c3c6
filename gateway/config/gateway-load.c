/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "config/gateway-config-private.h"

/*
 * Fills a GatewayConfig: headings name the gateway, its listener, a rule or a destination, and the
 * rows of the table say where the value of a key goes. lib/config finds the files and splits their
 * text; lines are remembered for complaints about keys that do not go together.
 */

typedef struct GatewayReader {
    GatewayLoad *load;
    const ConfigPlace *place;
    bool passed_over; /* the section is unknown, which was reported */
    const char *kind; /* the kind of section; NULL: none yet */
    void *base;       /* the struct of the section */
    GatewayOrigins *origins;
} GatewayReader;

#define report(reader, ...) config_report_at((reader)->place, __VA_ARGS__)

#define HEADINGS "write [Gateway], [Listen], [Relabel NAME] or [Send NAME]"

static bool gateway_name_is_valid(const char *name) {
    size_t n = strlen(name);

    if (n == 0 || n >= GATEWAY_NAME_MAX || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return true;
}

/* NAME of "KIND NAME"; NULL: another section; "": it has no name. */
static const char *gateway_name_of(const char *section, const char *kind) {
    size_t n = strlen(kind);

    if (strncmp(section, kind, n) != 0 || (section[n] && section[n] != ' '))
        return NULL;
    return section + n + strspn(section + n, " ");
}

static int gateway_enter(GatewayReader *reader, const char *kind, void *base,
                         GatewayOrigins *origins) {
    reader->kind = kind;
    reader->base = base;
    reader->origins = origins;
    origins->heading = (GatewayOrigin){reader->place->path, reader->place->line};
    return 0;
}

static int gateway_refuse_another(GatewayReader *reader, const char *kind, const char *name,
                                  int most) {
    report(reader, "[%s %s] is one too many: there may be %d of them at most", kind, name, most);
    return 0;
}

static int gateway_enter_send(GatewayReader *reader, const char *name) {
    GatewayConfig *config = reader->load->config;
    size_t i = 0;

    while (i < config->n_sends && strcmp(config->sends[i].name, name) != 0)
        i++;
    if (i == GATEWAY_SENDS_MAX)
        return gateway_refuse_another(reader, SECTION_SEND, name, GATEWAY_SENDS_MAX);
    if (i == config->n_sends) {
        config_table_defaults(gateway_config_table(), SECTION_SEND, &config->sends[i]);
        strcpy(config->sends[i].name, name);
        config->n_sends++;
    }
    return gateway_enter(reader, SECTION_SEND, &config->sends[i], &reader->load->sends[i]);
}

static int gateway_enter_rule(GatewayReader *reader, const char *name) {
    GatewayConfig *config = reader->load->config;
    size_t i = 0;

    while (i < config->n_rules && strcmp(config->rules[i].name, name) != 0)
        i++;
    if (i == GATEWAY_RULES_MAX)
        return gateway_refuse_another(reader, SECTION_RELABEL, name, GATEWAY_RULES_MAX);
    if (i == config->n_rules) {
        config_table_defaults(gateway_config_table(), SECTION_RELABEL, &config->rules[i]);
        strcpy(config->rules[i].name, name);
        config->n_rules++;
    }
    return gateway_enter(reader, SECTION_RELABEL, &config->rules[i], &reader->load->rules[i]);
}

static int gateway_enter_named(GatewayReader *reader, const char *section) {
    const char *send = gateway_name_of(section, SECTION_SEND);
    const char *rule = gateway_name_of(section, SECTION_RELABEL);

    if (!send && !rule)
        report(reader, "There is no section [%s]: " HEADINGS, section);
    else if (!gateway_name_is_valid(send ?: rule))
        report(reader,
               "[%s] has no good name: write [%s NAME], the name of at most %d letters, digits, "
               "'.', '_' and '-'",
               section, send ? SECTION_SEND : SECTION_RELABEL, GATEWAY_NAME_MAX - 1);
    else
        return send ? gateway_enter_send(reader, send) : gateway_enter_rule(reader, rule);
    return 0;
}

static void gateway_on_refused(void *userdata, const ConfigPlace *place) {
    GatewayReader *reader = userdata;

    reader->load->refused = (GatewayOrigin){place->path, place->line};
}

/* Whatever is not surely a destination may be a rule whose heading has a mistake. */
static void gateway_pass_over(GatewayReader *reader, const char *section) {
    reader->passed_over = true;
    if (!section || !gateway_name_of(section, SECTION_SEND))
        gateway_on_refused(reader, reader->place);
}

static int gateway_on_section(void *userdata, const ConfigPlace *place, const char *section) {
    GatewayReader *reader = userdata;
    GatewayLoad *load = reader->load;
    int r = 0;

    reader->place = place;
    reader->kind = NULL;
    reader->passed_over = false;
    if (!section)
        report(reader, "This heading is not closed: " HEADINGS);
    else if (strcmp(section, SECTION_GATEWAY) == 0)
        r = gateway_enter(reader, SECTION_GATEWAY, load->config, load->whole);
    else if (strcmp(section, SECTION_LISTEN) == 0)
        r = gateway_enter(reader, SECTION_LISTEN, load->config, load->whole);
    else
        r = gateway_enter_named(reader, section);
    if (!reader->kind)
        gateway_pass_over(reader, section);
    return r;
}

static void gateway_report_unknown(GatewayReader *reader, const char *name) {
    static const char *const kinds[] = {SECTION_GATEWAY, SECTION_LISTEN, SECTION_RELABEL,
                                        SECTION_SEND};
    const char *near = config_table_near(gateway_config_table(), reader->kind, name);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (config_table_find(gateway_config_table(), kinds[i], name)) {
            report(reader, "%s= is no key of [%s]: it belongs in [%s%s]", name, reader->kind,
                   kinds[i], i < 2 ? "" : " NAME");
            return;
        }
    if (near)
        report(reader, "There is no key %s= in [%s]: did you mean %s=?", name, reader->kind, near);
    else
        report(reader, "There is no key %s= in [%s]: gateway.conf(5) lists the keys", name,
               reader->kind);
}

static void gateway_set_key(GatewayReader *reader, const ConfigKey *key, const char *value) {
    ConfigTable table = gateway_config_table();
    GatewayOrigin *origin = &reader->origins->keys[key - table.keys];
    int r = key->parse(key, *value ? value : key->fallback, reader->base);

    if (r < 0) {
        config_table_refuse(reader->place, key, value, r);
        reader->origins->is_bad = true;
    } else {
        *origin =
            *value ? (GatewayOrigin){reader->place->path, reader->place->line} : (GatewayOrigin){};
    }
}

static void gateway_on_key(void *userdata, const ConfigPlace *place, const char *name,
                           const char *value) {
    GatewayReader *reader = userdata;
    const ConfigKey *key;

    reader->place = place;
    if (reader->passed_over)
        return;
    if (!reader->kind) {
        report(reader, "%s= stands before any section: " HEADINGS " above it", name);
        return;
    }
    key = config_table_find(gateway_config_table(), reader->kind, name);
    if (key) {
        gateway_set_key(reader, key, value);
    } else {
        gateway_report_unknown(reader, name);
        reader->origins->is_bad = true;
    }
}

static int gateway_read_file(GatewayLoad *load, const ConfigFile *file) {
    GatewayReader reader = {.load = load};

    return config_text_read(&load->files, file,
                            &(ConfigReader){.on_section = gateway_on_section,
                                            .on_key = gateway_on_key,
                                            .on_refused = gateway_on_refused,
                                            .userdata = &reader});
}

static int gateway_load_prepare(GatewayLoad *load) {
    load->config = calloc(1, sizeof(*load->config));
    load->whole = calloc(1, sizeof(*load->whole));
    load->sends = calloc(GATEWAY_SENDS_MAX, sizeof(*load->sends));
    load->rules = calloc(GATEWAY_RULES_MAX, sizeof(*load->rules));
    if (!load->config || !load->whole || !load->sends || !load->rules)
        return -ENOMEM;
    load->config->references = 1;
    config_table_defaults(gateway_config_table(), SECTION_GATEWAY, load->config);
    config_table_defaults(gateway_config_table(), SECTION_LISTEN, load->config);
    return 0;
}

int gateway_load_take(GatewayLoad *load) {
    int r = gateway_load_prepare(load);

    for (size_t i = 0; r == 0 && i < load->files.n; i++)
        r = gateway_read_file(load, &load->files.list[i]);
    if (r == 0)
        r = gateway_check(load);
    return r < 0 ? r : load->files.problems;
}

void gateway_load_done(GatewayLoad *load) {
    config_files_done(&load->files);
    freep(&load->whole);
    freep(&load->sends);
    freep(&load->rules);
    load->config = gateway_config_free(load->config);
}

int gateway_config_load(const char *root, const char *path, GatewayStoreCheck check_store,
                        ConfigProblem on_problem, void *userdata, GatewayConfig **ret) {
    _cleanup_(gateway_load_done) GatewayLoad load = {
        .files = {.on_problem = on_problem, .userdata = userdata}, .check_store = check_store};
    int r = config_files_find(&load.files, root, "profd/gateway.conf", path);

    if (r == 0)
        r = gateway_load_take(&load);
    if (r >= 0)
        *ret = TAKE_PTR(load.config);
    return r;
}
