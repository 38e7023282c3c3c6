/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of a parsed interface. Names are ranges of its text. */

#include "protocol/interface.h"
#include "util/bytes.h"

typedef enum TypeKind {
    TYPE_BOOL,
    TYPE_INT,
    TYPE_FLOAT,
    TYPE_STRING,
    TYPE_OBJECT, /* any value */
    TYPE_ENUM,   /* fields without a type */
    TYPE_STRUCT,
    TYPE_NAMED,
    TYPE_ARRAY,
    TYPE_MAP,
    TYPE_NULLABLE,
} TypeKind;

typedef struct Type Type;
typedef struct TypeField {
    Bytes name;
    Type *type; /* NULL in an enum */
} TypeField;

struct Type {
    TypeKind kind;
    Type *of;   /* the element type of an array, map or nullable; of a named one the type itself,
                 * borrowed */
    Bytes name; /* for a named type */
    TypeField *fields;
    size_t n_fields;
};

typedef enum MemberKind { MEMBER_TYPE, MEMBER_METHOD, MEMBER_ERROR } MemberKind;

typedef struct Member {
    MemberKind kind;
    char *name;
    Type *in; /* of a type or an error: the type */
    Type *out;
} Member;

struct Interface {
    const char *text;
    char *name;
    Member *members;
    size_t n_members;
};

const Member *interface_find(const Interface *interface, MemberKind kind, Bytes name);
