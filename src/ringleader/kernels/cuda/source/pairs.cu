// Pair counting: who meets whom in how many groups, how surprising that is, and which meetings it explains.
#include "warp.h"

#define EACH(i, count) \
    for (whole i = blockIdx.x * (whole)LANES + threadIdx.x; i < (count); i += gridDim.x * (whole)LANES)
#define NUMBER(key) ((whole)((key)&0xffffffffu))
#define FILTER_BITS 28

// Members of all groups, side by side; membership q is in group group_of[q].
struct Meetings {
    const whole* offsets;
    const int *members, *group_of;
    const double* log_rate;
    whole count;
};

// What makes chance of a pair: slots of actor i are slots[offsets[i]] and on; tastes and drawn are (actors, topics).
struct Chance {
    const whole* offsets;
    const int* slots;
    const double *values, *tastes, *drawn;
    int topics;
    double floor, doubt;
};

DEVICE Bits pair_of(Bits a, Bits b) { return a < b ? a << 32 | b : b << 32 | a; }
DEVICE Bits filter_bit(Bits key) { return (key ^ key >> 29) * 0x9E3779B97F4A7C15ull >> (64 - FILTER_BITS); }

// keys: the pair of every membership with each later one of its group, those of membership q from places[q] on.
extern "C" __global__ void __launch_bounds__(32) write_pairs(Meetings meetings, const whole* places, Bits* keys) {
    EACH(q, meetings.count) {
        whole place = places[q];
        for (whole r = q + 1; r < meetings.offsets[meetings.group_of[q] + 1]; r++)
            keys[place++] = pair_of(meetings.members[q], meetings.members[r]);
    }
}
KERNEL(write_pairs)

// Sets the bit of each pair: most pairs that met once are then known without a search.
extern "C" __global__ void __launch_bounds__(32) mark_pairs(const Bits* often, whole count, unsigned* filter) {
    EACH(p, count) {
        const Bits bit = filter_bit(often[p]);
        atomicOr(filter + (bit >> 5), 1u << (bit & 31));
    }
}
KERNEL(mark_pairs)

// The meetings of the pairs `often`: how many each membership has with later ones, in `found`; where `places` are given,
// which pair each is of, and its two memberships, from there on.
extern "C" __global__ void __launch_bounds__(32) find_meetings(Meetings meetings, const Bits* often, whole count,
                                                               const unsigned* filter, const whole* places, whole* found,
                                                               int* pair, int* first, int* second) {
    EACH(q, meetings.count) {
        whole hits = 0;
        for (whole r = q + 1; r < meetings.offsets[meetings.group_of[q] + 1]; r++) {
            const Bits key = pair_of(meetings.members[q], meetings.members[r]), bit = filter_bit(key);
            if (!(filter[bit >> 5] >> (bit & 31) & 1)) continue;
            whole low = 0, high = count;
            while (low < high) {
                const whole middle = (low + high) / 2;
                if (often[middle] < key)
                    low = middle + 1;
                else
                    high = middle;
            }
            if (low == count || often[low] != key) continue;
            if (places) {
                pair[places[q] + hits] = (int)low;
                first[places[q] + hits] = (int)q;
                second[places[q] + hits] = (int)r;
            }
            hits++;
        }
        if (!places) found[q] = hits;
    }
}
KERNEL(find_meetings)

// LLR of each pair by chance, and by chance and tastes; `rest`: the latter without one meeting, but for that one's rate.
// Meetings of pair p are those numbered in by_pair[begins[p]] and on. Same as: reference.pairs.lockstep_of_actors.
extern "C" __global__ void __launch_bounds__(32) judge_pairs(Meetings meetings, Chance chance, const Bits* often,
                                                             whole count, const whole* begins, const Bits* by_pair,
                                                             const int* first, double* values, double* beyond,
                                                             double* rest) {
    EACH(p, count) {
        const whole i = (whole)(often[p] >> 32), j = NUMBER(often[p]);
        const real c = (real)(begins[p + 1] - begins[p]);
        real rates = 0, mu = 0, together = 0;
        for (whole h = begins[p]; h < begins[p + 1]; h++)
            rates += meetings.log_rate[meetings.group_of[first[NUMBER(by_pair[h])]]];
        for (whole e = chance.offsets[j]; e < chance.offsets[j + 1]; e++)
            for (whole f = chance.offsets[i]; f < chance.offsets[i + 1]; f++)
                if (chance.slots[e] == chance.slots[f]) mu += chance.values[f] * chance.values[e];
        for (int k = 0; k < chance.topics; k++)
            together += chance.tastes[i * chance.topics + k] * chance.drawn[j * chance.topics + k];
        const real plain = fmax(mu, chance.floor);
        mu = fmax(mu * together, chance.floor);
        values[p] = c > plain ? fmax(c * log(c / plain) - rates - (c - plain) - chance.doubt, 0.0) : 0.0;
        beyond[p] = c > mu ? fmax(c * log(c / mu) - rates - (c - mu) - chance.doubt, 0.0) : 0.0;
        const real less = c - 1;
        rest[p] = less > mu ? less * log(less / mu) - rates - (less - mu) - chance.doubt : -1e300;
    }
}
KERNEL(judge_pairs)

// Scores of memberships: the meetings of membership q are by_member[begins[q]] and on, numbered below 2 `total`.
extern "C" __global__ void __launch_bounds__(32) score_memberships(Meetings meetings, const whole* begins,
                                                                   const Bits* by_member, whole total, const int* pair,
                                                                   const double* rest, double* scores) {
    EACH(q, meetings.count) {
        real sum = 0;
        const real rate = meetings.log_rate[meetings.group_of[q]];
        for (whole h = begins[q]; h < begins[q + 1]; h++) {
            const whole meeting = NUMBER(by_member[h]);
            sum += fmax(rest[pair[meeting < total ? meeting : meeting - total]] + rate, 0.0);
        }
        scores[q] = sum;
    }
}
KERNEL(score_memberships)
