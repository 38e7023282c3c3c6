// SPDX-License-Identifier: LGPL-2.1-or-later
// What the page is about: frames, and the tree of stacks in preorder, in typed arrays. See page-data.c
// for the form in which they come.

const DIGIT_VALUES = (() => {
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const values = new Uint8Array(128);

    for (let i = 0; i < digits.length; i++)
        values[digits.charCodeAt(i)] = i;
    return values;
})();

// Returns a function that reads the next number of a text of digits.
function digitReader(text) {
    let at = 0;

    return () => {
        let value = 0, factor = 1, digit;

        do {
            digit = DIGIT_VALUES[text.charCodeAt(at++)];
            value += (digit & 31) * factor;
            factor *= 32;
        } while (digit & 32);
        return value;
    };
}

function decodeFrames(data) {
    const n = data.n_frames, next = digitReader(data.frames);
    const frames = {
        n,
        name: new Uint32Array(n), dso: new Uint32Array(n), kind: new Uint8Array(n),
        address: data.by_address ? new Array(n) : null,
        place: data.by_address ? new Array(n) : null,
    };

    for (let i = 0; i < n; i++) {
        frames.name[i] = next();
        frames.dso[i] = next();
        frames.kind[i] = next();
        if (!data.by_address)
            continue;
        const high = next(), low = next(), file = next(), line = next();

        frames.address[i] = (BigInt(high) << 32n) | BigInt(low);
        frames.place[i] = file ? data.texts[file] + (line ? ":" + line : "") : "";
    }
    return frames;
}

function decodeNodes(data) {
    const n = data.n_nodes, next = digitReader(data.nodes);
    const nodes = {
        n,
        frame: new Int32Array(n), parent: new Int32Array(n), end: new Int32Array(n),
    };
    const weights = {
        self: new Float64Array(n),
        samples: data.by_period ? new Float64Array(n) : null,
        before: data.compared ? new Float64Array(n) : null,
        samplesBefore: data.compared && data.by_period ? new Float64Array(n) : null,
    };
    const open = [];

    nodes.frame[0] = nodes.parent[0] = -1;
    for (let i = 0; i < n; i++) {
        if (i > 0) {
            for (let up = next(); up > 0; up--)
                nodes.end[open.pop()] = i;
            nodes.frame[i] = next();
            nodes.parent[i] = open[open.length - 1];
        }
        open.push(i);
        weights.self[i] = next();
        if (weights.samples)
            weights.samples[i] = next();
        if (weights.before)
            weights.before[i] = next();
        if (weights.samplesBefore)
            weights.samplesBefore[i] = next();
    }
    for (const i of open)
        nodes.end[i] = n;
    return { nodes, weights };
}

function decodeModel(data) {
    const frames = decodeFrames(data), { nodes, weights } = decodeNodes(data);
    const model = {
        data, frames, nodes, weights,
        unit: data.unit,
        kinds: data.kinds,
        kindNumber: new Map(data.kinds.map((name, i) => [name, i])),
        byName: null,
    };

    if (data.by_address)
        model.byName = mergeFrames(model);
    return model;
}

// For each frame the first one that differs only in its address.
function mergeFrames(model) {
    const { frames } = model, first = new Map(), merged = new Int32Array(frames.n);

    for (let i = 0; i < frames.n; i++) {
        const key = `${frames.name[i]},${frames.dso[i]},${frames.kind[i]}`;

        if (!first.has(key))
            first.set(key, i);
        merged[i] = first.get(key);
    }
    return merged;
}

const LABEL_KINDS = new Set(["unit", "container", "cgroup", "command", "process", "thread", "cpu"]);

const kindOf = (model, frame) => frame < 0 ? "all" : model.kinds[model.frames.kind[frame]];
const isLabel = (model, frame) => LABEL_KINDS.has(kindOf(model, frame));
const nameOf = (model, frame) => frame < 0 ? "all" : model.data.texts[model.frames.name[frame]];
const dsoOf = (model, frame) => frame < 0 ? "" : model.data.texts[model.frames.dso[frame]];

// Own weights added up over subtrees.
function totalsOf(nodes, self) {
    const total = Float64Array.from(self);

    for (let i = nodes.n - 1; i > 0; i--)
        total[nodes.parent[i]] += total[i];
    return total;
}
