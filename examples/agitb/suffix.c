/* The model `Suffix` of models.py in C, for `robo-eval agitb suffix.so`:
 *
 *     gcc -O2 -shared -fPIC -o suffix.so examples/agitb/suffix.c
 *
 * A state is copied and compared byte by byte, so it holds no pointers, and no gaps that nobody
 * has written. It predicts what the model in Python predicts.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FULL = 1023, LIFE = 1000, ENDS = 3 };

static const int ends[ENDS] = {1, 6, 16};

typedef struct {
    uint64_t mark;          /* all it saw is mixed into it */
    uint64_t count;         /* inputs so far */
    uint16_t newest[4];     /* the last three of them */
    uint16_t seen[LIFE];    /* all of them, until it forgets */
} Suffix;

size_t agitb_size(void) { return sizeof(Suffix); }

void agitb_begin(void *state) {
    memset(state, 0, sizeof(Suffix));
    ((Suffix *)state)->mark = 1;
}

/* What first followed the newest `length` inputs; `guess` if they were not there before. */
static int followed(const Suffix *self, int length, int guess) {
    const int count = (int)self->count;
    const uint16_t *newest = self->seen + count - length;
    for (int at = length; at < count; at++)
        if (memcmp(self->seen + at - length, newest, 2 * (size_t)length) == 0)
            return self->seen[at];
    return guess;
}

int agitb_step(void *state, int input) {
    Suffix *self = state;
    self->mark = self->mark * 6364136223846793005u + 2u * (uint64_t)input + 1442695040888963407u;
    if (self->count < LIFE)
        self->seen[self->count] = (uint16_t)input;
    else if (self->count == LIFE)
        memset(self->seen, 0, sizeof self->seen);
    self->count++;
    memmove(self->newest, self->newest + 1, 2 * sizeof self->newest[0]);
    self->newest[2] = (uint16_t)input;

    int guess = (int)(self->mark >> 40);
    if (self->count <= LIFE) {
        for (int i = 0; i < ENDS; i++)
            if (self->count > (uint64_t)ends[i]) guess = followed(self, ends[i], guess);
    } else if (self->newest[2] == self->newest[0]) {
        guess = self->newest[1];
    }
    return guess & FULL & ~input;
}
