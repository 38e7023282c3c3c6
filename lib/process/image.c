/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/image.h"

#include "util/hash.h"

/* A hash table with chains, like that of the names. The names of an image are interned first, so
 * images are compared by pointers and numbers. */

enum { BUCKETS_MIN = 64 };

static ProcessImage **image_bucket_of(const ProcessImages *images, uint64_t hash) {
    return &images->buckets[hash & (images->n_buckets - 1)];
}

static bool image_images_grow(ProcessImages *images, ProcessBudget *budget) {
    ProcessImages next = *images;

    next.n_buckets = images->n_buckets ? images->n_buckets * 2 : BUCKETS_MIN;
    next.buckets = budget_alloc(budget, next.n_buckets * sizeof(*next.buckets));
    if (!next.buckets)
        return images->buckets;
    if (!images->buckets)
        next.seed = hash_seed();
    for (size_t i = 0; i < images->n_buckets; i++)
        for (ProcessImage *image = images->buckets[i], *after; image; image = after) {
            ProcessImage **bucket = image_bucket_of(&next, image->hash);

            after = image->next;
            image->next = *bucket;
            *bucket = image;
        }
    budget_free(budget, images->buckets, images->n_buckets * sizeof(*images->buckets));
    *images = next;
    return true;
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
    return a->hash == b->hash && a->path == b->path && a->dso == b->dso && a->major == b->major &&
           a->minor == b->minor && a->inode == b->inode && a->generation == b->generation &&
           a->kernel == b->kernel && a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0;
}

static bool image_equal(const ProcessImage *a, const ProcessImage *b) {
    return a->prot == b->prot && a->flags == b->flags && image_is_same_file(a, b);
}

/* Takes ownership of the names of `key`, or releases them. */
static ProcessImage *image_images_intern(ProcessStrings *s, const ProcessImage *key) {
    ProcessImage **bucket = image_bucket_of(&s->images, key->hash), *image;

    for (image = *bucket; image; image = image->next)
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
    image->next = *bucket;
    *bucket = image;
    s->images.n++;
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

    if (s->images.n >= s->images.n_buckets && !image_images_grow(&s->images, &s->budget))
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

ProcessImage *images_find_code(const ProcessStrings *s, const ProcessImage *data) {
    for (ProcessImage *image = *image_bucket_of(&s->images, data->hash); image; image = image->next)
        if ((image->prot & PROT_EXEC) && image_is_same_file(image, data))
            return image;
    return NULL;
}

ProcessImage *images_put(ProcessStrings *s, ProcessImage *image) {
    ProcessImage **at;

    if (!image || --image->refs > 0)
        return NULL;
    for (at = image_bucket_of(&s->images, image->hash); *at != image; at = &(*at)->next)
        ;
    *at = image->next;
    s->images.n--;
    names_put(&s->names, &s->budget, image->path);
    names_put(&s->names, &s->budget, image->dso);
    return budget_free(&s->budget, image, sizeof(*image));
}

void images_done(ProcessStrings *s) {
    ProcessImages *images = &s->images;

    for (size_t i = 0; i < images->n_buckets; i++)
        while (images->buckets[i]) {
            images->buckets[i]->refs = 1;
            images_put(s, images->buckets[i]);
        }
    budget_free(&s->budget, images->buckets, images->n_buckets * sizeof(*images->buckets));
    *images = (ProcessImages){};
}
