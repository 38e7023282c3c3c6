/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/interface-private.h"
#include "util/text.h"

/*
 * Compares a value with its type. The first error ends the check, and its position is assembled on
 * the way back: fields, indexes and keys. The depth of the recursion is bounded by the nesting of
 * messages.
 */

typedef struct Check {
    InterfaceStrictness strictness;
    char *field; /* INTERFACE_FIELD_SIZE bytes */
} Check;

/* Prepends a step to the position of the error; the name may contain anything that JSON allows. */
static int interface_check_wrong_in(Check *check, const char *open, const char *name,
                                    const char *close) {
    _cleanup_(buffer_done) Buffer text = {};
    const char *rest = check->field;

    text_puts(&text, open);
    text_escape_str(&text, name);
    text_puts(&text, close);
    text_puts(&text, *rest && *rest != '[' ? "." : "");
    text_puts(&text, rest);
    text_putc(&text, '\0');
    if (buffer_error(&text) < 0)
        return -ENOMEM;
    snprintf(check->field, INTERFACE_FIELD_SIZE, "%s", (const char *)text.data);
    return -EINVAL;
}

static int interface_check_value(Check *check, const Type *type, const json_t *value);

static const TypeField *interface_check_find_field(const Type *type, const char *name) {
    for (size_t i = 0; i < type->n_fields; i++)
        if (bytes_equal_str(type->fields[i].name, name))
            return &type->fields[i];
    return NULL;
}

static const json_t *interface_check_get_field(const json_t *object, Bytes name) {
    char key[INTERFACE_FIELD_SIZE];

    if (name.size >= sizeof(key))
        return NULL;
    memcpy(key, name.data, name.size);
    key[name.size] = '\0';
    return json_object_get(object, key);
}

static int interface_check_struct(Check *check, const Type *type, const json_t *value) {
    const char *name;
    json_t *held;

    if (value && !json_is_object(value))
        return -EINVAL;
    json_object_foreach((json_t *)value, name,
                        held) if (!interface_check_find_field(type, name) &&
                                  check->strictness ==
                                      INTERFACE_STRICT) return interface_check_wrong_in(check, "",
                                                                                        name, "");
    for (size_t i = 0; i < type->n_fields; i++) {
        const TypeField *field = &type->fields[i];
        int r = interface_check_value(check, field->type,
                                      interface_check_get_field(value, field->name));

        if (r == -EINVAL) {
            char key[INTERFACE_FIELD_SIZE];

            snprintf(key, sizeof(key), "%.*s", (int)field->name.size, field->name.data);
            return interface_check_wrong_in(check, "", key, "");
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int interface_check_enum(const Type *type, const json_t *value) {
    return json_is_string(value) && interface_check_find_field(type, json_string_value(value))
               ? 0
               : -EINVAL;
}

static int interface_check_array(Check *check, const Type *type, const json_t *value) {
    json_t *held;
    size_t i;

    if (!json_is_array(value))
        return -EINVAL;
    json_array_foreach(value, i, held) {
        int r = interface_check_value(check, type->of, held);

        if (r == -EINVAL) {
            char index[24];

            snprintf(index, sizeof(index), "%zu", i);
            return interface_check_wrong_in(check, "[", index, "]");
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int interface_check_map(Check *check, const Type *type, const json_t *value) {
    const char *key;
    json_t *held;

    if (!json_is_object(value))
        return -EINVAL;
    json_object_foreach((json_t *)value, key, held) {
        int r = interface_check_value(check, type->of, held);

        if (r < 0)
            return r == -EINVAL ? interface_check_wrong_in(check, "[", key, "]") : r;
    }
    return 0;
}

/* A missing value is NULL. */
static int interface_check_value(Check *check, const Type *type, const json_t *value) {
    switch (type->kind) {
    case TYPE_BOOL:
        return json_is_boolean(value) ? 0 : -EINVAL;
    case TYPE_INT:
        return json_is_integer(value) ? 0 : -EINVAL;
    case TYPE_FLOAT:
        return json_is_number(value) ? 0 : -EINVAL;
    case TYPE_STRING:
        return json_is_string(value) ? 0 : -EINVAL;
    case TYPE_OBJECT:
        return json_is_object(value) ? 0 : -EINVAL;
    case TYPE_ENUM:
        return interface_check_enum(type, value);
    case TYPE_STRUCT:
        return value ? interface_check_struct(check, type, value) : -EINVAL;
    case TYPE_NAMED:
        return interface_check_value(check, type->of, value);
    case TYPE_ARRAY:
        return interface_check_array(check, type, value);
    case TYPE_MAP:
        return interface_check_map(check, type, value);
    case TYPE_NULLABLE:
        return !value || json_is_null(value) ? 0 : interface_check_value(check, type->of, value);
    }
    return -EINVAL;
}

int interface_check(const Interface *interface, InterfacePart part, const char *member,
                    const json_t *object, InterfaceStrictness strictness,
                    char ret_field[INTERFACE_FIELD_SIZE]) {
    MemberKind kind = part == INTERFACE_ERROR ? MEMBER_ERROR : MEMBER_METHOD;
    Bytes name = {.data = (const uint8_t *)member, .size = strlen(member)};
    const Member *found = interface_find(interface, kind, name);
    char field[INTERFACE_FIELD_SIZE] = "";
    Check check = {.strictness = strictness, .field = field};
    int r;

    if (!found)
        return -ENOENT;
    r = interface_check_struct(&check, part == INTERFACE_REPLY ? found->out : found->in, object);
    if (r == -EINVAL && ret_field)
        memcpy(ret_field, field, sizeof(field));
    return r;
}
