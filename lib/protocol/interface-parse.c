/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/interface.h"

#include <errno.h>
#include <ctype.h>
#include <string.h>

#include "protocol/interface-private.h"
#include "util/array.h"

/*
 * A descent over the text of an interface:
 *
 *   interface NAME { type NAME Struct | method NAME Struct -> Struct | error NAME Struct }
 *   Struct: ( [field: Type {, field: Type}] ), or names alone: an enum
 *   Type: [?] { [] | [string] } bool | int | float | string | object | NAME | Struct
 *
 * The texts are our own, yet nothing in one leads out of bounds: types nest to a depth, and names
 * of types are looked up when all are known.
 */

enum { DEPTH_MAX = 16, MEMBERS_MAX = 256, FIELDS_MAX = 256 };

typedef struct Reader {
    const char *at;
    unsigned line;
} Reader;

static Type *interface_parse_type_free(Type *type) {
    if (!type)
        return NULL;
    if (type->kind != TYPE_NAMED)
        interface_parse_type_free(type->of);
    for (size_t i = 0; i < type->n_fields; i++)
        interface_parse_type_free(type->fields[i].type);
    free(type->fields);
    free(type);
    return NULL;
}
DEFINE_CLEANUP(Type *, interface_parse_type_free);

Interface *interface_free(Interface *interface) {
    if (!interface)
        return NULL;
    for (size_t i = 0; i < interface->n_members; i++) {
        free(interface->members[i].name);
        interface_parse_type_free(interface->members[i].in);
        interface_parse_type_free(interface->members[i].out);
    }
    free(interface->members);
    free(interface->name);
    free(interface);
    return NULL;
}

/* Skips white space and comments. */
static void interface_parse_skip(Reader *r) {
    for (; *r->at; r->at++)
        if (*r->at == '\n')
            r->line++;
        else if (*r->at == '#')
            r->at += strcspn(r->at, "\n") - 1;
        else if (!isspace((unsigned char)*r->at))
            return;
}

static bool interface_parse_take(Reader *r, const char *mark) {
    size_t n = strlen(mark);

    interface_parse_skip(r);
    if (strncmp(r->at, mark, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool interface_parse_is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Letters, digits and _, inside also `more`; empty if there is none. */
static Bytes interface_parse_take_word(Reader *r, char more) {
    const char *begin;

    interface_parse_skip(r);
    begin = r->at;
    if (isalpha((unsigned char)*r->at))
        while (interface_parse_is_word(*r->at) || (more && *r->at == more))
            r->at++;
    return (Bytes){.data = (const uint8_t *)begin, .size = (size_t)(r->at - begin)};
}

static int interface_parse_new_type(TypeKind kind, Type **ret) {
    Type *type = calloc(1, sizeof(*type));

    if (!type)
        return -ENOMEM;
    type->kind = kind;
    *ret = type;
    return 0;
}

static int interface_parse_read_type(Reader *r, unsigned depth, Type **ret);

static bool interface_parse_has_field(const Type *type, Bytes name) {
    for (size_t i = 0; i < type->n_fields; i++)
        if (bytes_equal(type->fields[i].name, name))
            return true;
    return false;
}

static int interface_parse_read_field(Reader *r, unsigned depth, Type *type) {
    Bytes name = interface_parse_take_word(r, 0);
    bool has_type = interface_parse_take(r, ":");
    TypeField *field;

    if (name.size == 0 || interface_parse_has_field(type, name) || type->n_fields >= FIELDS_MAX)
        return -EBADMSG;
    if (type->n_fields > 0 && has_type != (type->kind == TYPE_STRUCT))
        return -EBADMSG;
    type->kind = has_type ? TYPE_STRUCT : TYPE_ENUM;
    field = array_grow(&type->fields, &type->n_fields);
    if (!field)
        return -ENOMEM;
    field->name = name;
    return has_type ? interface_parse_read_type(r, depth + 1, &field->type) : 0;
}

static int interface_parse_read_struct(Reader *r, unsigned depth, Type **ret) {
    _cleanup_(interface_parse_type_freep) Type *type = NULL;
    int k = interface_parse_new_type(TYPE_STRUCT, &type);

    if (k == 0 && !interface_parse_take(r, "("))
        k = -EBADMSG;
    if (k == 0 && !interface_parse_take(r, ")")) {
        do
            k = interface_parse_read_field(r, depth, type);
        while (k == 0 && interface_parse_take(r, ","));
        if (k == 0 && !interface_parse_take(r, ")"))
            k = -EBADMSG;
    }
    if (k < 0)
        return k;
    *ret = TAKE_PTR(type);
    return 0;
}

static int interface_parse_read_name(Reader *r, Type **ret) {
    /* clang-format off */
    static const struct { const char *name; TypeKind kind; } plain[] = {
        { "bool",   TYPE_BOOL   },
        { "int",    TYPE_INT    },
        { "float",  TYPE_FLOAT  },
        { "string", TYPE_STRING },
        { "object", TYPE_OBJECT },
    };
    /* clang-format on */
    Bytes name = interface_parse_take_word(r, 0);
    int k;

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (bytes_equal_str(name, plain[i].name))
            return interface_parse_new_type(plain[i].kind, ret);
    if (name.size == 0)
        return -EBADMSG;
    k = interface_parse_new_type(TYPE_NAMED, ret);
    if (k == 0)
        (*ret)->name = name;
    return k;
}

static int interface_parse_read_type(Reader *r, unsigned depth, Type **ret) {
    /* clang-format off */
    static const struct { const char *mark; TypeKind kind; } marks[] = {
        { "?",        TYPE_NULLABLE },
        { "[]",       TYPE_ARRAY    },
        { "[string]", TYPE_MAP      },
    };
    /* clang-format on */
    _cleanup_(interface_parse_type_freep) Type *type = NULL;
    int k;

    if (depth > DEPTH_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        if (!interface_parse_take(r, marks[i].mark))
            continue;
        k = interface_parse_new_type(marks[i].kind, &type);
        if (k == 0)
            k = interface_parse_read_type(r, depth + 1, &type->of);
        if (k == 0 && type->kind == TYPE_NULLABLE && type->of->kind == TYPE_NULLABLE)
            k = -EBADMSG;
        if (k == 0)
            *ret = TAKE_PTR(type);
        return k;
    }
    interface_parse_skip(r);
    return *r->at == '(' ? interface_parse_read_struct(r, depth, ret)
                         : interface_parse_read_name(r, ret);
}

/* Parameters cannot be an enum. */
static int interface_parse_read_fields(Reader *r, Type **ret) {
    int k = interface_parse_read_struct(r, 0, ret);

    return k == 0 && (*ret)->kind != TYPE_STRUCT ? -EBADMSG : k;
}

static int interface_parse_read_member(Reader *r, Interface *interface) {
    Bytes word = interface_parse_take_word(r, 0), name = interface_parse_take_word(r, 0);
    MemberKind kind = bytes_equal_str(word, "type")     ? MEMBER_TYPE
                      : bytes_equal_str(word, "method") ? MEMBER_METHOD
                                                        : MEMBER_ERROR;
    Member *member;
    int k;

    if ((kind == MEMBER_ERROR && !bytes_equal_str(word, "error")) || name.size == 0 ||
        interface->n_members >= MEMBERS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < interface->n_members; i++)
        if (bytes_equal_str(name, interface->members[i].name))
            return -EBADMSG;
    member = array_grow(&interface->members, &interface->n_members);
    if (!member)
        return -ENOMEM;
    member->kind = kind;
    member->name = strndup((const char *)name.data, name.size);
    if (!member->name)
        return -ENOMEM;
    k = kind == MEMBER_TYPE ? interface_parse_read_struct(r, 0, &member->in)
                            : interface_parse_read_fields(r, &member->in);
    if (k < 0 || kind != MEMBER_METHOD)
        return k;
    return interface_parse_take(r, "->") ? interface_parse_read_fields(r, &member->out) : -EBADMSG;
}

const Member *interface_find(const Interface *interface, MemberKind kind, Bytes name) {
    for (size_t i = 0; i < interface->n_members; i++)
        if (interface->members[i].kind == kind && bytes_equal_str(name, interface->members[i].name))
            return &interface->members[i];
    return NULL;
}

static int interface_parse_resolve(const Interface *interface, Type *type) {
    const Member *member;
    int r = 0;

    if (!type)
        return 0;
    if (type->kind == TYPE_NAMED) {
        member = interface_find(interface, MEMBER_TYPE, type->name);
        type->of = member ? member->in : NULL;
        return member ? 0 : -EBADMSG;
    }
    for (size_t i = 0; r == 0 && i < type->n_fields; i++)
        r = interface_parse_resolve(interface, type->fields[i].type);
    return r == 0 ? interface_parse_resolve(interface, type->of) : r;
}

static int interface_parse_read_interface(Reader *r, Interface *interface) {
    Bytes word = interface_parse_take_word(r, 0), name = interface_parse_take_word(r, '.');
    int k = 0;

    if (!bytes_equal_str(word, "interface") || name.size == 0)
        return -EBADMSG;
    interface->name = strndup((const char *)name.data, name.size);
    if (!interface->name)
        return -ENOMEM;
    for (interface_parse_skip(r); k == 0 && *r->at; interface_parse_skip(r))
        k = interface_parse_read_member(r, interface);
    for (size_t i = 0; k == 0 && i < interface->n_members; i++) {
        k = interface_parse_resolve(interface, interface->members[i].in);
        if (k == 0)
            k = interface_parse_resolve(interface, interface->members[i].out);
    }
    return k;
}

int interface_new(const char *text, Interface **ret, unsigned *ret_line) {
    _cleanup_(interface_freep) Interface *interface = calloc(1, sizeof(*interface));
    Reader reader = {.at = text, .line = 1};
    int r;

    if (!interface)
        return -ENOMEM;
    interface->text = text;
    r = interface_parse_read_interface(&reader, interface);
    if (r < 0) {
        if (ret_line)
            *ret_line = reader.line;
        return r;
    }
    *ret = TAKE_PTR(interface);
    return 0;
}

const char *interface_name(const Interface *interface) {
    return interface->name;
}

const char *interface_text(const Interface *interface) {
    return interface->text;
}

const char *interface_method(const Interface *interface, size_t i) {
    for (size_t k = 0; k < interface->n_members; k++)
        if (interface->members[k].kind == MEMBER_METHOD && i-- == 0)
            return interface->members[k].name;
    return NULL;
}
