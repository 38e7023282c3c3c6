/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-xml.h"

#include <errno.h>
#include <string.h>

#include "util/macro.h"

/*
 * Walks through a small XML document. A walk is one pass over the bytes with a stack of the open
 * elements, which are views into the document.
 */

typedef struct S3XmlWalk {
    Bytes left;
    S3XmlPath path;
    Bytes text;
    S3XmlElement element;
    void *userdata;
} S3XmlWalk;

static void s3_xml_skip(S3XmlWalk *walk, size_t n) {
    walk->left.data += n;
    walk->left.size -= n;
}

static bool s3_xml_begins(const S3XmlWalk *walk, const char *word) {
    size_t n = strlen(word);

    return walk->left.size >= n && memcmp(walk->left.data, word, n) == 0;
}

/* Skips to the end of what `word` ends. */
static int s3_xml_skip_past(S3XmlWalk *walk, const char *word) {
    const uint8_t *found = memmem(walk->left.data, walk->left.size, word, strlen(word));

    if (!found)
        return -EBADMSG;
    s3_xml_skip(walk, (size_t)(found - walk->left.data) + strlen(word));
    return 0;
}

static bool s3_xml_is_space(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes a name; what is before its last colon is a prefix. */
static int s3_xml_take_name(S3XmlWalk *walk, Bytes *ret) {
    const uint8_t *p = walk->left.data;
    size_t n = 0, begin = 0;

    while (n < walk->left.size && !s3_xml_is_space(p[n]) && !strchr("/>=<\"'", p[n])) {
        n++;
        begin = p[n - 1] == ':' ? n : begin;
    }
    if (n == begin)
        return -EBADMSG;
    *ret = (Bytes){.data = p + begin, .size = n - begin};
    s3_xml_skip(walk, n);
    return 0;
}

/* Skips attributes up to the '>', which may be in a quoted value. */
static int s3_xml_skip_attributes(S3XmlWalk *walk, bool *ret_empty) {
    const uint8_t *p = walk->left.data;
    uint8_t quote = 0;

    for (size_t i = 0; i < walk->left.size; i++) {
        if (quote) {
            quote = p[i] == quote ? 0 : quote;
        } else if (p[i] == '"' || p[i] == '\'') {
            quote = p[i];
        } else if (p[i] == '<') {
            return -EBADMSG;
        } else if (p[i] == '>') {
            *ret_empty = i > 0 && p[i - 1] == '/';
            s3_xml_skip(walk, i + 1);
            return 0;
        }
    }
    return -EBADMSG;
}

static int s3_xml_close(S3XmlWalk *walk) {
    int r = walk->element(walk->userdata, &walk->path, walk->text);

    walk->path.n--;
    walk->text = (Bytes){};
    return r;
}

static int s3_xml_open_tag(S3XmlWalk *walk) {
    bool is_empty = false;
    Bytes name;
    int r;

    s3_xml_skip(walk, 1);
    r = s3_xml_take_name(walk, &name);
    if (r == 0)
        r = s3_xml_skip_attributes(walk, &is_empty);
    if (r < 0 || walk->path.n == S3_XML_DEPTH_MAX)
        return -EBADMSG;
    walk->path.names[walk->path.n++] = name;
    walk->text = (Bytes){};
    return is_empty ? s3_xml_close(walk) : 0;
}

static int s3_xml_close_tag(S3XmlWalk *walk) {
    bool is_empty;
    Bytes name, open;
    int r;

    s3_xml_skip(walk, 2);
    r = s3_xml_take_name(walk, &name);
    if (r == 0)
        r = s3_xml_skip_attributes(walk, &is_empty);
    if (r < 0 || walk->path.n == 0)
        return -EBADMSG;
    open = walk->path.names[walk->path.n - 1];
    if (open.size != name.size || memcmp(open.data, name.data, name.size) != 0)
        return -EBADMSG;
    return s3_xml_close(walk);
}

static int s3_xml_take_text(S3XmlWalk *walk) {
    const uint8_t *end = memchr(walk->left.data, '<', walk->left.size);
    size_t n = end ? (size_t)(end - walk->left.data) : walk->left.size;

    walk->text = (Bytes){.data = walk->left.data, .size = n};
    s3_xml_skip(walk, n);
    return 0;
}

static int s3_xml_step(S3XmlWalk *walk) {
    if (walk->left.data[0] != '<')
        return s3_xml_take_text(walk);
    if (s3_xml_begins(walk, "<?"))
        return s3_xml_skip_past(walk, "?>");
    if (s3_xml_begins(walk, "<!--"))
        return s3_xml_skip_past(walk, "-->");
    if (s3_xml_begins(walk, "<!"))
        return -EBADMSG;
    return s3_xml_begins(walk, "</") ? s3_xml_close_tag(walk) : s3_xml_open_tag(walk);
}

int s3_xml_walk(Bytes xml, S3XmlElement element, void *userdata) {
    S3XmlWalk walk = {.left = xml, .element = element, .userdata = userdata};

    while (walk.left.size > 0) {
        int r = s3_xml_step(&walk);

        if (r < 0)
            return r;
    }
    return walk.path.n == 0 ? 0 : -EBADMSG;
}

bool s3_xml_is(const S3XmlPath *path, const char *names) {
    for (unsigned i = 0; i < path->n; i++) {
        size_t n = strcspn(names, "/");

        if (n == 0 || n != path->names[i].size || memcmp(names, path->names[i].data, n) != 0)
            return false;
        names += n + (names[n] == '/');
    }
    return *names == '\0';
}

/* "&amp;" and the like at the beginning of text; *ret_size: how long it is. */
static int s3_xml_entity(Bytes text, char *ret, size_t *ret_size) {
    static const struct {
        const char *word;
        char character;
    } rows[] = {{"&amp;", '&'},   {"&lt;", '<'},    {"&gt;", '>'},   {"&quot;", '"'},
                {"&apos;", '\''}, {"&#34;", '"'},   {"&#39;", '\''}, {"&#38;", '&'},
                {"&#x22;", '"'},  {"&#x27;", '\''}, {"&#x26;", '&'}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t n = strlen(rows[i].word);

        if (text.size >= n && memcmp(text.data, rows[i].word, n) == 0) {
            *ret = rows[i].character;
            *ret_size = n;
            return 0;
        }
    }
    return -EBADMSG;
}

int s3_xml_text(Bytes text, char *ret, size_t size) {
    size_t n = 0;

    while (text.size > 0) {
        char c = (char)text.data[0];
        size_t taken = 1;

        if (c == '&' && s3_xml_entity(text, &c, &taken) < 0)
            return -EBADMSG;
        if ((uint8_t)c < 0x20 || (uint8_t)c == 0x7f)
            return -EBADMSG;
        if (n + 1 >= size)
            return -E2BIG;
        ret[n++] = c;
        text.data += taken;
        text.size -= taken;
    }
    ret[n] = '\0';
    return 0;
}
