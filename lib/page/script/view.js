// SPDX-License-Identifier: LGPL-2.1-or-later
// Trees that are drawn, made of the tree of the model: as it is, merged, turned around, or the
// callers or callees of one function. A tree has its nodes in preorder.

// Above this many nodes, what has less than this share of the whole is not followed further.
const NODES_EXACT = 1500000, SHARE_LEAST = 1e-5;

class TreeMaker {
    constructor(source, least) {
        this.source = source; // totals and the like, see addUp()
        this.least = least;
        this.frame = [];
        this.parent = [];
        this.depth = [];
        this.columns = {};
        for (const name of Object.keys(source))
            this.columns[name] = [];
        this.self = [];
    }

    add(frame, parent, depth) {
        this.frame.push(frame);
        this.parent.push(parent);
        this.depth.push(depth);
        for (const column of Object.values(this.columns))
            column.push(0);
        this.self.push(0);
        return this.frame.length - 1;
    }

    // Adds the weights of a node of the source.
    weigh(node, origin) {
        for (const [name, column] of Object.entries(this.columns))
            column[node] += this.source[name][origin];
    }

    finish() {
        const n = this.frame.length;
        const tree = {
            n,
            frame: Int32Array.from(this.frame),
            parent: Int32Array.from(this.parent),
            depth: Int32Array.from(this.depth),
            end: endsOf(n, this.parent),
            self: Float64Array.from(this.self),
        };

        for (const [name, column] of Object.entries(this.columns))
            tree[name] = Float64Array.from(column);
        return tree;
    }
}

// The end of each subtree, of nodes in preorder.
function endsOf(n, parent) {
    const end = new Int32Array(n);

    for (let i = n - 1; i >= 0; i--) {
        if (end[i] <= i)
            end[i] = i + 1;
        if (i > 0 && end[parent[i]] < end[i])
            end[parent[i]] = end[i];
    }
    return end;
}

// The columns of `weights` for nodes: their own weights, or with what is above them.
function addUp(model, weights, own) {
    const up = (column) => own ? column : totalsOf(model.nodes, column);
    const columns = { total: up(weights.self) };

    if (weights.samples)
        columns.samples = up(weights.samples);
    if (weights.before)
        columns.before = up(weights.before);
    if (weights.samplesBefore)
        columns.samplesBefore = up(weights.samplesBefore);
    return columns;
}

// The tree as it is.
function treeAsIs(model, weights) {
    const { nodes } = model, depth = new Int32Array(nodes.n);

    for (let i = 1; i < nodes.n; i++)
        depth[i] = depth[nodes.parent[i]] + 1;
    return {
        n: nodes.n, frame: nodes.frame, parent: nodes.parent, end: nodes.end, depth,
        self: weights.self, ...addUp(model, weights, false),
    };
}

// Groups of entries that have one frame each come together, in the order of their first entry.
// `keys` and `entries` are arrays of one length; calls each(frame, from, to) afterwards.
function groupEntries(keys, n, slots, move, each) {
    const groups = [];

    for (let i = 0; i < n; i++) {
        const key = keys[i];
        let slot = slots.get(key);

        if (slot === undefined) {
            slot = groups.length;
            slots.set(key, slot);
            groups.push({ key, size: 0, from: 0, at: 0 });
        }
        groups[slot].size++;
    }
    let from = 0;

    for (const group of groups) {
        group.from = group.at = from;
        from += group.size;
    }
    for (let i = 0; i < n; i++)
        move(i, groups[slots.get(keys[i])].at++);
    slots.clear();
    for (const group of groups)
        each(group.key, group.from, group.from + group.size);
}

// From each entry upwards to its callers: entries are nodes, `first` where the walk begins.
function treeUpwards(model, source, rootFrame, origins, firsts, frameMap, least) {
    const { nodes } = model, maker = new TreeMaker(source, least);
    const n = origins.length, origin = Int32Array.from(origins), cursor = Int32Array.from(firsts);
    const originCopy = new Int32Array(n), cursorCopy = new Int32Array(n), keys = new Int32Array(n);
    const slots = new Map(), work = [{ frame: rootFrame, parent: -1, depth: 0, from: 0, to: n }];

    while (work.length > 0) {
        const group = work.pop(), node = maker.add(group.frame, group.parent, group.depth);
        const children = [];
        let left = group.from;

        for (let i = group.from; i < group.to; i++) {
            maker.weigh(node, origin[i]);
            if (cursor[i] <= 0) {
                maker.self[node] += source.total[origin[i]];
                continue;
            }
            const o = origin[i], c = cursor[i];

            origin[left] = o;
            cursor[left++] = c;
        }
        if (maker.columns.total[node] + (maker.columns.before ? maker.columns.before[node] : 0) < least)
            continue;
        const base = group.from, size = left - base;

        for (let i = 0; i < size; i++) {
            const frame = nodes.frame[cursor[base + i]];

            keys[i] = frameMap ? frameMap[frame] : frame;
            originCopy[i] = origin[base + i];
            cursorCopy[i] = cursor[base + i];
        }
        groupEntries(keys, size, slots, (i, to) => {
            origin[base + to] = originCopy[i];
            cursor[base + to] = nodes.parent[cursorCopy[i]];
        }, (frame, from, to) => children.push(
            { frame, parent: node, depth: group.depth + 1, from: base + from, to: base + to }));
        while (children.length > 0)
            work.push(children.pop());
    }
    return { ...maker.finish(), upwards: true };
}

// From entries, which are nodes, downwards to their callees.
function treeDownwards(model, source, rootFrame, entries, own, frameMap, least) {
    const { nodes } = model, maker = new TreeMaker(source, least), slots = new Map();
    const stack = new Int32Array(nodes.n + entries.length), keys = new Int32Array(nodes.n);
    const moved = new Int32Array(nodes.n);
    const work = [{ frame: rootFrame, parent: -1, depth: 0, from: 0, to: entries.length }];

    stack.set(entries);
    while (work.length > 0) {
        const group = work.pop(), node = maker.add(group.frame, group.parent, group.depth);
        const children = [], base = group.to;
        let size = 0;

        for (let i = group.from; i < group.to; i++) {
            maker.weigh(node, stack[i]);
            maker.self[node] += own[stack[i]];
            for (let c = stack[i] + 1; c < nodes.end[stack[i]]; c = nodes.end[c]) {
                moved[size] = c;
                keys[size++] = frameMap ? frameMap[nodes.frame[c]] : nodes.frame[c];
            }
        }
        if (maker.columns.total[node] + (maker.columns.before ? maker.columns.before[node] : 0) < least)
            continue;
        groupEntries(keys, size, slots, (i, to) => {
            stack[base + to] = moved[i];
        }, (frame, from, to) => children.push(
            { frame, parent: node, depth: group.depth + 1, from: base + from, to: base + to }));
        // The last group is next, since what it needs is put behind it.
        work.push(...children);
    }
    return maker.finish();
}

function leastWeight(model, weights) {
    const sum = (column) => column ? column.reduce((a, b) => a + b, 0) : 0;

    return model.nodes.n < NODES_EXACT / 8 ? 0 : SHARE_LEAST * (sum(weights.self) + sum(weights.before));
}

function treeTopDown(model, weights, frameMap) {
    if (!frameMap)
        return treeAsIs(model, weights);
    return treeDownwards(model, addUp(model, weights, false), -1, [0], weights.self, frameMap, 0);
}

function treeBottomUp(model, weights, frameMap) {
    const { nodes } = model, origins = [];

    for (let i = 1; i < nodes.n; i++)
        if (weights.self[i] > 0 || (weights.before && weights.before[i] > 0))
            origins.push(i);
    return treeUpwards(model, addUp(model, weights, true), -1, origins, origins, frameMap,
                       leastWeight(model, weights));
}

// The outermost nodes of a function: recursion counts once.
function outermostNodes(model, frame, frameMap) {
    const { nodes } = model, found = [];

    for (let i = 1; i < nodes.n;) {
        const own = frameMap ? frameMap[nodes.frame[i]] : nodes.frame[i];

        if (own === frame)
            found.push(i);
        i = own === frame ? nodes.end[i] : i + 1;
    }
    return found;
}

function treeOfCallers(model, weights, frame, frameMap) {
    const origins = outermostNodes(model, frame, frameMap);
    const firsts = origins.map((i) => model.nodes.parent[i]);

    return treeUpwards(model, addUp(model, weights, false), frame, origins, firsts, frameMap,
                       leastWeight(model, weights));
}

function treeOfCallees(model, weights, frame, frameMap) {
    const entries = outermostNodes(model, frame, frameMap);

    return treeDownwards(model, addUp(model, weights, false), frame, entries, weights.self, frameMap, 0);
}

// Where nodes are: levels from the root, each with its nodes from left to right.
function layOut(model, tree, order) {
    const x = new Float64Array(tree.n), levels = [Int32Array.of(0)];
    const value = tree.total, children = [];
    const compare = order === "name"
        ? (a, b) => nameOf(model, tree.frame[a]) < nameOf(model, tree.frame[b]) ? -1 : 1
        : (a, b) => value[b] - value[a] || a - b;

    for (let level = levels[0]; level.length > 0; level = levels[levels.length - 1]) {
        const next = [];

        for (const node of level) {
            let at = x[node];

            children.length = 0;
            for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
                if (value[c] > 0)
                    children.push(c);
            if (children.length > 1)
                children.sort(compare);
            for (const c of children) {
                x[c] = at;
                at += value[c];
                next.push(c);
            }
        }
        levels.push(Int32Array.from(next));
    }
    levels.pop();
    // The right edges of each level, for searches.
    const edges = levels.map((level) => Float64Array.from(level, (node) => x[node] + value[node]));

    return { tree, x, levels, edges };
}

// Self and total of each function, with recursion counted once; by frame.
function functionSums(model, weights, frameMap) {
    const { nodes, frames } = model, columns = addUp(model, weights, false);
    const sums = { self: new Float64Array(frames.n), total: new Float64Array(frames.n) };
    const open = new Int32Array(frames.n), path = [];

    if (weights.before) {
        sums.selfBefore = new Float64Array(frames.n);
        sums.before = new Float64Array(frames.n);
        sums.samples = new Float64Array(frames.n);
        sums.samplesBefore = new Float64Array(frames.n);
        sums.allSamples = sumOf(weights.samples || weights.self);
        sums.allSamplesBefore = sumOf(weights.samplesBefore || weights.before);
    }
    for (let i = 1; i < nodes.n; i++) {
        while (path.length > 0 && nodes.end[path[path.length - 1].node] <= i)
            open[path.pop().frame]--;
        const frame = frameMap ? frameMap[nodes.frame[i]] : nodes.frame[i];

        sums.self[frame] += weights.self[i];
        if (weights.before) {
            sums.selfBefore[frame] += weights.before[i];
            sums.samples[frame] += (weights.samples || weights.self)[i];
            sums.samplesBefore[frame] += (weights.samplesBefore || weights.before)[i];
        }
        if (open[frame]++ === 0) {
            sums.total[frame] += columns.total[i];
            if (weights.before)
                sums.before[frame] += columns.before[i];
        }
        path.push({ node: i, frame });
    }
    return sums;
}

// The weight of stacks in which some frame matches, each counted once.
function matchedWeight(model, weights, matches) {
    const { nodes } = model, total = totalsOf(nodes, weights.self);
    let sum = 0;

    for (let i = 1; i < nodes.n;) {
        const hit = matches[nodes.frame[i]];

        if (hit)
            sum += total[i];
        i = hit ? nodes.end[i] : i + 1;
    }
    return sum;
}
