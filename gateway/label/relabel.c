/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "label/relabel.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#include "util/buffer.h"
#include "util/text.h"

/*
 * Relabelling rules. A rule joins the values of its source labels and matches the whole text with a
 * POSIX extended regular expression. Expressions come from a configuration, values from hosts that
 * run arbitrary programs: back-references, whose matching may take exponential time, and large
 * repetitions, which take much memory, are refused when the rule is made.
 */

enum { RELABEL_GROUPS = 11 }; /* the anchoring group, then $0 is it, $1 to $9 */

struct RelabelRule {
    RelabelAction action;
    char *sources[RELABEL_SOURCES_MAX];
    size_t n_sources;
    char *separator, *target, *replacement;
    regex_t regex;
    bool has_regex;
};

RelabelRule *relabel_rule_free(RelabelRule *rule) {
    if (!rule)
        return NULL;
    for (size_t i = 0; i < rule->n_sources; i++)
        free(rule->sources[i]);
    free(rule->separator);
    free(rule->target);
    free(rule->replacement);
    if (rule->has_regex)
        regfree(&rule->regex);
    free(rule);
    return NULL;
}

int relabel_action_from_name(const char *name, RelabelAction *ret) {
    static const char *const names[] = {
        [RELABEL_REPLACE] = "replace",
        [RELABEL_KEEP] = "keep",
        [RELABEL_DROP] = "drop",
        [RELABEL_LABELDROP] = "labeldrop",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret = (RelabelAction)i;
            return 0;
        }
    return -EINVAL;
}

/* The larger number of {n,m} at `s`, after the brace; 1 if there is none. */
static size_t relabel_repeat_at(const char *s) {
    size_t largest = 1;

    for (size_t v = 0; *s && *s != '}' && largest <= RELABEL_COST_MAX; s++) {
        v = *s >= '0' && *s <= '9' ? v * 10 + (size_t)(*s - '0') : 0;
        largest = MAX(largest, v);
    }
    return largest;
}

/* The last byte of a bracket expression, as [^]a-z[:space:]]. */
static const char *relabel_bracket_end(const char *s) {
    const char *first = s + 1 + (s[1] == '^');

    for (s = first; *s && (*s != ']' || s == first); s++)
        if (*s == '[' && s[1] == ':' && strstr(s + 2, ":]"))
            s = strstr(s + 2, ":]") + 1;
    return *s ? s : s - 1;
}

/* What regcomp() would make of a part: how many nodes, and how deep repetitions are nested. */
typedef struct RelabelCost {
    size_t nodes, levels;
} RelabelCost;

/*
 * regcomp() copies what '+' and {n,m} repeat, and its memory grows exponentially where repetitions
 * are nested, as in "a++++++++++". This walks over the expression: `open` has the cost of the
 * content of each open parenthesis, `last` is what a repetition would copy.
 */
static const char *relabel_regex_problem(const char *regex) {
    RelabelCost open[RELABEL_DEPTH_MAX + 1] = {}, last = {};
    size_t depth = 0, times;

    if (strlen(regex) > RELABEL_REGEX_MAX)
        return "the regular expression is too long";
    for (const char *s = regex; *s; s++) {
        times = *s == '+' ? 2 : *s == '{' ? relabel_repeat_at(s + 1) : 1;
        if (*s == '\\' && s[1] >= '1' && s[1] <= '9')
            return "the regular expression has a back-reference";
        if (*s == '(' && depth == RELABEL_DEPTH_MAX)
            return "the regular expression is nested too deeply";
        if (*s == '(') {
            open[++depth] = last = (RelabelCost){};
        } else if (*s == ')' && depth > 0) {
            last = open[depth--];
            open[depth].nodes += ++last.nodes;
        } else if (strchr("+*?{", *s)) {
            open[depth].nodes += last.nodes * (times - 1);
            last.nodes *= times;
            last.levels++;
        } else {
            s = *s == '[' ? relabel_bracket_end(s) : s + (*s == '\\' && s[1]);
            last = (RelabelCost){.nodes = 1};
            open[depth].nodes++;
        }
        open[depth].levels = MAX(open[depth].levels, last.levels);
        if (open[depth].nodes > RELABEL_COST_MAX || times > RELABEL_COST_MAX ||
            open[depth].levels > RELABEL_LEVELS_MAX)
            return "the regular expression repeats too much";
    }
    return NULL;
}

static int relabel_set_regex(RelabelRule *rule, const char *regex, const char **ret_problem) {
    _cleanup_(buffer_done) Buffer whole = {};
    int r;

    *ret_problem = relabel_regex_problem(regex);
    if (*ret_problem)
        return -EINVAL;
    text_puts(&whole, "^(");
    text_puts(&whole, regex);
    text_puts(&whole, ")$");
    text_putc(&whole, '\0');
    if (buffer_error(&whole))
        return buffer_error(&whole);
    /* Alone first, so that "a)(b" is not made valid by the parentheses around it. */
    r = regcomp(&rule->regex, regex, REG_EXTENDED);
    if (r == 0) {
        regfree(&rule->regex);
        r = regcomp(&rule->regex, (const char *)whole.data, REG_EXTENDED);
    }
    rule->has_regex = r == 0;
    if (r == REG_ESPACE)
        return -ENOMEM;
    *ret_problem = r == 0 ? NULL : "the regular expression is not valid";
    return r == 0 ? 0 : -EINVAL;
}

static int relabel_set_sources(RelabelRule *rule, const char *names, const char **ret_problem) {
    for (size_t n; *names; names += n) {
        char *name;

        names += strspn(names, ", ");
        n = strcspn(names, ", ");
        if (n == 0)
            break;
        *ret_problem = "it has too many source labels";
        if (rule->n_sources == RELABEL_SOURCES_MAX)
            return -EINVAL;
        name = strndup(names, n);
        if (!name)
            return -ENOMEM;
        rule->sources[rule->n_sources++] = name;
        *ret_problem = "a source label is not a valid name";
        if (!label_is_name(name))
            return -EINVAL;
    }
    *ret_problem = NULL;
    return 0;
}

static int relabel_check(const RelabelText *text, const char **ret_problem) {
    if (text->action == RELABEL_REPLACE && !text->target_label)
        *ret_problem = "replace needs a target label";
    else if (text->target_label && !label_is_name(text->target_label))
        *ret_problem = "the target label is not a valid name";
    else if ((text->action == RELABEL_KEEP || text->action == RELABEL_DROP) && !text->source_labels)
        *ret_problem = "keep and drop need source labels";
    else
        return 0;
    return -EINVAL;
}

int relabel_rule_new(const RelabelText *text, RelabelRule **ret, const char **ret_problem) {
    _cleanup_(relabel_rule_freep) RelabelRule *rule = calloc(1, sizeof(*rule));
    int r;

    *ret_problem = NULL;
    if (!rule)
        return -ENOMEM;
    r = relabel_check(text, ret_problem);
    if (r == 0)
        r = relabel_set_sources(rule, text->source_labels ?: "", ret_problem);
    if (r == 0)
        r = relabel_set_regex(rule, text->regex ?: "(.*)", ret_problem);
    if (r < 0)
        return r;
    rule->action = text->action;
    rule->separator = strdup(text->separator ?: ";");
    rule->target = strdup(text->target_label ?: "");
    rule->replacement = strdup(text->replacement ?: "$1");
    if (!rule->separator || !rule->target || !rule->replacement)
        return -ENOMEM;
    *ret = TAKE_PTR(rule);
    return 0;
}

/* $N or ${N}: the number, and *ret_size bytes of the text; -1 for other text. */
static int relabel_group_at(const char *s, size_t *ret_size) {
    bool braces = s[0] == '$' && s[1] == '{';
    const char *digit = s + 1 + braces;

    if (s[0] != '$' || *digit < '0' || *digit > '9' || (braces && digit[1] != '}'))
        return -1;
    *ret_size = braces ? 4 : 2;
    return *digit - '0';
}

static void relabel_expand(const char *replacement, const char *value, const regmatch_t *groups,
                           Buffer *out) {
    for (size_t size; *replacement; replacement += size) {
        int group = relabel_group_at(replacement, &size);

        if (group < 0) {
            size = strncmp(replacement, "$$", 2) == 0 ? 2 : 1;
            text_putc(out, *replacement);
        } else if (groups[group + 1].rm_so >= 0) {
            const regmatch_t *match = &groups[group + 1];

            buffer_append(out, value + match->rm_so, (size_t)(match->rm_eo - match->rm_so));
        }
    }
    text_putc(out, '\0');
}

static void relabel_drop_names(const RelabelRule *rule, LabelSet *set) {
    /* From the end, because removing moves what follows. */
    for (size_t i = set->n; i-- > 0;)
        if (regexec(&rule->regex, set->list[i].name, 0, NULL, 0) == 0)
            label_set_remove(set, set->list[i].name);
}

int relabel_apply(const RelabelRule *rule, LabelSet *set) {
    _cleanup_(buffer_done) Buffer value = {}, expanded = {};
    regmatch_t groups[RELABEL_GROUPS];
    bool matches;
    int r;

    if (rule->action == RELABEL_LABELDROP) {
        relabel_drop_names(rule, set);
        return 1;
    }
    for (size_t i = 0; i < rule->n_sources; i++) {
        text_puts(&value, i > 0 ? rule->separator : "");
        text_puts(&value, label_set_get(set, rule->sources[i]) ?: "");
    }
    text_putc(&value, '\0');
    if (buffer_error(&value))
        return buffer_error(&value);
    matches = regexec(&rule->regex, (const char *)value.data, ARRAY_SIZE(groups), groups, 0) == 0;
    if (rule->action != RELABEL_REPLACE)
        return matches == (rule->action == RELABEL_KEEP);
    if (!matches)
        return 1;
    relabel_expand(rule->replacement, (const char *)value.data, groups, &expanded);
    if (buffer_error(&expanded))
        return buffer_error(&expanded);
    r = label_set_put(set, rule->target, (const char *)expanded.data);
    return r < 0 ? r : 1;
}
