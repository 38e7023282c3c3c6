/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/image.h"

#include "util/hash.h"

/* In a hash table, like the names. The names of an image are interned first, so that two
 * images are compared by pointers and numbers. */

static uint64_t image_key(const void *image) {
    return ((const ProcessImage *)image)->hash;
}

/* Hashes the identity of the file, so that all images of a file are in one bucket. */
static uint64_t image_hash(uint64_t seed, const ProcessImage *image) {
    Bytes build_id = {.data = image->build_id, .size = image->build_id_size};
    uint64_t h = hash_u64(seed, image->path->hash);

    h = hash_u64(seed, h ^ image->dso->hash);
    h = hash_u64(seed, h ^ image->inode);
    return hash_u64(seed, h ^ hash_bytes(seed, build_id));
}

static bool image_is_same_file(const ProcessImage *a, const ProcessImage *b) {
    return !a->is_apart && a->hash == b->hash && a->path == b->path && a->dso == b->dso &&
           a->major == b->major && a->minor == b->minor && a->inode == b->inode &&
           a->generation == b->generation && a->kernel == b->kernel &&
           a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0;
}

static bool image_equal(const ProcessImage *a, const ProcessImage *b) {
    return a->prot == b->prot && a->flags == b->flags && image_is_same_file(a, b);
}

/* Takes ownership of the names of `key`, or releases them. */
static ProcessImage *image_images_intern(ProcessStrings *s, const ProcessImage *key) {
    ProcessImage *image;

    for (image = hash_table_chain(&s->images, key->hash); image; image = image->next)
        if (image_equal(image, key)) {
            names_put(&s->names, &s->budget, key->path);
            names_put(&s->names, &s->budget, key->dso);
            return image_ref(image);
        }
    image = budget_alloc(&s->budget, sizeof(*image));
    if (!image) {
        names_put(&s->names, &s->budget, key->path);
        names_put(&s->names, &s->budget, key->dso);
        return NULL;
    }
    *image = *key;
    image->refs = 1;
    hash_table_add(&s->images, image, image->hash);
    return image;
}

ProcessImage *images_get(ProcessStrings *s, const PdMmap *mmap, Bytes dso, bool kernel) {
    ProcessImage key = {
        .prot = mmap->prot,
        .flags = mmap->flags,
        .major = mmap->major,
        .minor = mmap->minor,
        .inode = mmap->inode,
        .generation = mmap->generation,
        .kernel = kernel,
    };

    if (!hash_table_make_room(&s->images, &s->budget, image_key))
        return NULL;
    key.path = names_get(&s->names, &s->budget, mmap->filename);
    if (!key.path)
        return NULL;
    key.dso = names_get(&s->names, &s->budget, dso);
    if (!key.dso) {
        names_put(&s->names, &s->budget, key.path);
        return NULL;
    }
    if (mmap->build_id_size > 0) {
        key.build_id_size = (uint8_t)MIN((size_t)mmap->build_id_size, sizeof(key.build_id));
        memcpy(key.build_id, mmap->build_id, key.build_id_size);
    }
    key.hash = image_hash(s->images.seed, &key);
    return image_images_intern(s, &key);
}

ProcessImage *images_split(ProcessStrings *s, ProcessImage *image) {
    ProcessImage *other;

    if (!hash_table_make_room(&s->images, &s->budget, image_key))
        return NULL;
    other = budget_alloc(&s->budget, sizeof(*other));
    if (!other)
        return NULL;
    *other = (ProcessImage){.hash = image->hash,
                            .refs = 1,
                            .prot = image->prot,
                            .flags = image->flags,
                            .major = image->major,
                            .minor = image->minor,
                            .inode = image->inode,
                            .generation = image->generation,
                            .kernel = image->kernel,
                            .path = name_ref(image->path),
                            .dso = name_ref(image->dso)};
    hash_table_add(&s->images, other, other->hash);
    return other;
}

ProcessImage *images_find_code(const ProcessStrings *s, const ProcessImage *data) {
    ProcessImage *image = hash_table_chain(&s->images, data->hash);

    for (; image; image = image->next)
        if ((image->prot & PROT_EXEC) && image_is_same_file(image, data))
            return image;
    return NULL;
}

ProcessImage *images_put(ProcessStrings *s, ProcessImage *image) {
    if (!image || --image->refs > 0)
        return NULL;
    hash_table_remove(&s->images, image, image->hash);
    images_put(s, image->unproven);
    names_put(&s->names, &s->budget, image->path);
    names_put(&s->names, &s->budget, image->dso);
    return budget_free(&s->budget, image, sizeof(*image));
}

void images_done(ProcessStrings *s) {
    ProcessImage *image;

    for (size_t at = 0; (image = hash_table_from(&s->images, &at));) {
        image->refs = 1;
        image->unproven = NULL;
        images_put(s, image);
    }
    hash_table_done(&s->images, &s->budget);
}
