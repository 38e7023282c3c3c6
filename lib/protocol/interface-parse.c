/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/interface.h"

#include <errno.h>
#include <ctype.h>
#include <stdio.h>
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

static Type *type_free(Type *type) {
    if (!type)
        return NULL;
    if (type->kind != TYPE_NAMED)
        type_free(type->of);
    for (size_t i = 0; i < type->n_fields; i++)
        type_free(type->fields[i].type);
    free(type->fields);
    free(type);
    return NULL;
}
DEFINE_CLEANUP(Type *, type_free);

Interface *interface_free(Interface *interface) {
    if (!interface)
        return NULL;
    for (size_t i = 0; i < interface->n_members; i++) {
        free(interface->members[i].name);
        type_free(interface->members[i].in);
        type_free(interface->members[i].out);
    }
    free(interface->members);
    free(interface->name);
    free(interface);
    return NULL;
}

/* White space and comments. */
static void skip(Reader *r) {
    for (; *r->at; r->at++)
        if (*r->at == '\n')
            r->line++;
        else if (*r->at == '#')
            r->at += strcspn(r->at, "\n") - 1;
        else if (!isspace((unsigned char)*r->at))
            return;
}

static bool take(Reader *r, const char *mark) {
    size_t n = strlen(mark);

    skip(r);
    if (strncmp(r->at, mark, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Letters, digits and _, `more` within too; empty where there is none. */
static Bytes take_word(Reader *r, char more) {
    const char *begin;

    skip(r);
    begin = r->at;
    if (isalpha((unsigned char)*r->at))
        while (is_word(*r->at) || (more && *r->at == more))
            r->at++;
    return (Bytes){.data = (const uint8_t *)begin, .size = (size_t)(r->at - begin)};
}

static int new_type(TypeKind kind, Type **ret) {
    Type *type = calloc(1, sizeof(*type));

    if (!type)
        return -ENOMEM;
    type->kind = kind;
    *ret = type;
    return 0;
}

static int read_type(Reader *r, unsigned depth, Type **ret);

static bool has_field(const Type *type, Bytes name) {
    for (size_t i = 0; i < type->n_fields; i++)
        if (bytes_equal(type->fields[i].name, name))
            return true;
    return false;
}

static int read_field(Reader *r, unsigned depth, Type *type) {
    Bytes name = take_word(r, 0);
    bool has_type = take(r, ":");
    TypeField *field;

    if (name.size == 0 || has_field(type, name) || type->n_fields >= FIELDS_MAX)
        return -EBADMSG;
    if (type->n_fields > 0 && has_type != (type->kind == TYPE_STRUCT))
        return -EBADMSG;
    type->kind = has_type ? TYPE_STRUCT : TYPE_ENUM;
    field = array_grow(&type->fields, &type->n_fields);
    if (!field)
        return -ENOMEM;
    field->name = name;
    return has_type ? read_type(r, depth + 1, &field->type) : 0;
}

static int read_struct(Reader *r, unsigned depth, Type **ret) {
    _cleanup_(type_freep) Type *type = NULL;
    int k = new_type(TYPE_STRUCT, &type);

    if (k == 0 && !take(r, "("))
        k = -EBADMSG;
    if (k == 0 && !take(r, ")")) {
        do
            k = read_field(r, depth, type);
        while (k == 0 && take(r, ","));
        if (k == 0 && !take(r, ")"))
            k = -EBADMSG;
    }
    if (k < 0)
        return k;
    *ret = TAKE_PTR(type);
    return 0;
}

static int read_name(Reader *r, Type **ret) {
    /* clang-format off */
    static const struct { const char *name; TypeKind kind; } plain[] = {
        { "bool",   TYPE_BOOL   },
        { "int",    TYPE_INT    },
        { "float",  TYPE_FLOAT  },
        { "string", TYPE_STRING },
        { "object", TYPE_OBJECT },
    };
    /* clang-format on */
    Bytes name = take_word(r, 0);
    int k;

    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (bytes_equal_str(name, plain[i].name))
            return new_type(plain[i].kind, ret);
    if (name.size == 0)
        return -EBADMSG;
    k = new_type(TYPE_NAMED, ret);
    if (k == 0)
        (*ret)->name = name;
    return k;
}

static int read_type(Reader *r, unsigned depth, Type **ret) {
    /* clang-format off */
    static const struct { const char *mark; TypeKind kind; } marks[] = {
        { "?",        TYPE_NULLABLE },
        { "[]",       TYPE_ARRAY    },
        { "[string]", TYPE_MAP      },
    };
    /* clang-format on */
    _cleanup_(type_freep) Type *type = NULL;
    int k;

    if (depth > DEPTH_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        if (!take(r, marks[i].mark))
            continue;
        k = new_type(marks[i].kind, &type);
        if (k == 0)
            k = read_type(r, depth + 1, &type->of);
        if (k == 0 && type->kind == TYPE_NULLABLE && type->of->kind == TYPE_NULLABLE)
            k = -EBADMSG;
        if (k == 0)
            *ret = TAKE_PTR(type);
        return k;
    }
    skip(r);
    return *r->at == '(' ? read_struct(r, depth, ret) : read_name(r, ret);
}

/* What is passed is no enum. */
static int read_fields(Reader *r, Type **ret) {
    int k = read_struct(r, 0, ret);

    return k == 0 && (*ret)->kind != TYPE_STRUCT ? -EBADMSG : k;
}

static int read_member(Reader *r, Interface *interface) {
    Bytes word = take_word(r, 0), name = take_word(r, 0);
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
    k = kind == MEMBER_TYPE ? read_struct(r, 0, &member->in) : read_fields(r, &member->in);
    if (k < 0 || kind != MEMBER_METHOD)
        return k;
    return take(r, "->") ? read_fields(r, &member->out) : -EBADMSG;
}

const Member *interface_find(const Interface *interface, MemberKind kind, Bytes name) {
    for (size_t i = 0; i < interface->n_members; i++)
        if (interface->members[i].kind == kind && bytes_equal_str(name, interface->members[i].name))
            return &interface->members[i];
    return NULL;
}

static int resolve(const Interface *interface, Type *type) {
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
        r = resolve(interface, type->fields[i].type);
    return r == 0 ? resolve(interface, type->of) : r;
}

static int read_interface(Reader *r, Interface *interface) {
    Bytes word = take_word(r, 0), name = take_word(r, '.');
    int k = 0;

    if (!bytes_equal_str(word, "interface") || name.size == 0)
        return -EBADMSG;
    interface->name = strndup((const char *)name.data, name.size);
    if (!interface->name)
        return -ENOMEM;
    for (skip(r); k == 0 && *r->at; skip(r))
        k = read_member(r, interface);
    for (size_t i = 0; k == 0 && i < interface->n_members; i++) {
        k = resolve(interface, interface->members[i].in);
        if (k == 0)
            k = resolve(interface, interface->members[i].out);
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
    r = read_interface(&reader, interface);
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
