/* cuDNN's recurrent layers: PyTorch keeps all weights of a layer in one buffer and asks cuDNN how large it is and where each one lies.
 *
 *   of each layer and direction:  input matrices | recurrent matrices | projection   then, behind all of those:  input biases | recurrent biases
 *
 * Workspaces and the reserve of a training step, which only cuDNN knows, are none. */
#include "phantom/phantom.h"

enum { BAD_PARAMETER = 2000, NOT_SUPPORTED = 3000 };
enum { LSTM = 2, GRU = 3, NO_BIAS = 0, INPUT_BIAS = 1, DOUBLE_BIAS = 2, RECURRENT_BIAS = 3 };

/* In the 256 bytes that a descriptor has (oos_handle_new). */
typedef struct rnn_descriptor {
    uint64_t known;
    int32_t mode, bias, directions, type, input, hidden, projection, layers;
} rnn_descriptor;

typedef struct tensor_descriptor {
    uint64_t known;
    int32_t type, rows, columns;
} tensor_descriptor;

enum { KNOWN = 0x6e6e72 };

static uint64_t type_bytes(int type)
{
    return type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4; /* double, half, bfloat16 */
}

static uint64_t gates(const rnn_descriptor *rnn)
{
    return rnn->mode == LSTM ? 4 : rnn->mode == GRU ? 3 : 1;
}

/* What goes from a step to the next one, and from a layer to the next one in each direction. */
static uint64_t state(const rnn_descriptor *rnn)
{
    return (uint64_t)(rnn->projection && rnn->projection != rnn->hidden ? rnn->projection : rnn->hidden);
}

static bool is_projected(const rnn_descriptor *rnn)
{
    return state(rnn) != (uint64_t)rnn->hidden;
}

/* Columns of the input matrices of a pseudo-layer: a layer and a direction. */
static uint64_t input_of(const rnn_descriptor *rnn, uint64_t pseudo)
{
    return pseudo < (uint64_t)rnn->directions ? (uint64_t)rnn->input : state(rnn) * (uint64_t)rnn->directions;
}

static uint64_t matrices_of(const rnn_descriptor *rnn, uint64_t pseudo)
{
    uint64_t const hidden = (uint64_t)rnn->hidden;
    return gates(rnn) * hidden * (input_of(rnn, pseudo) + state(rnn)) +
           (is_projected(rnn) ? hidden * state(rnn) : 0);
}

static uint64_t biases_of(const rnn_descriptor *rnn)
{
    return (rnn->bias == DOUBLE_BIAS ? 2 : rnn->bias != NO_BIAS) * gates(rnn) * (uint64_t)rnn->hidden;
}

static uint64_t matrices_before(const rnn_descriptor *rnn, uint64_t pseudo)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < pseudo; i++) sum += matrices_of(rnn, i);
    return sum;
}

static uint64_t pseudo_count(const rnn_descriptor *rnn)
{
    return (uint64_t)rnn->layers * (uint64_t)rnn->directions;
}

TAKE(int, cudnnSetRNNDescriptor_v8, void *descriptor, int algorithm, int mode, int bias, int direction,
     int input_mode, int type, int precision, int math, int32_t input, int32_t hidden, int32_t projection,
     int32_t layers, void *dropout, uint32_t flags)
{
    enum { MOST = 1 << 20 }; /* products of three stay below 2^64 */
    if (!descriptor || input < 0 || input > MOST || hidden < 1 || hidden > MOST || projection < 0 ||
        projection > hidden || layers < 1 || layers > 65536)
        return BAD_PARAMETER;
    *(rnn_descriptor *)descriptor =
        (rnn_descriptor){KNOWN, mode, bias, direction ? 2 : 1, type, input, hidden, projection, layers};
    return 0;
}

TAKE(int, cudnnGetRNNWeightSpaceSize, void *handle, const rnn_descriptor *rnn, size_t *ret_bytes)
{
    if (!rnn || !ret_bytes || rnn->known != KNOWN) return BAD_PARAMETER;
    *ret_bytes = (matrices_before(rnn, pseudo_count(rnn)) + pseudo_count(rnn) * biases_of(rnn)) *
                 type_bytes(rnn->type);
    return 0;
}

static void tell(tensor_descriptor *descriptor, const rnn_descriptor *rnn, uint64_t rows, uint64_t columns)
{
    if (descriptor) *descriptor = (tensor_descriptor){KNOWN, rnn->type, (int32_t)rows, (int32_t)columns};
}

/* Elements before the matrix `id` of a pseudo-layer, and its columns; gates of the input first, then the recurrent ones. */
static uint64_t matrix_at(const rnn_descriptor *rnn, uint64_t pseudo, uint64_t id, uint64_t *ret_columns)
{
    uint64_t const hidden = (uint64_t)rnn->hidden, count = gates(rnn), input = input_of(rnn, pseudo);
    *ret_columns = id < count ? input : id < 2 * count ? state(rnn) : hidden;
    return matrices_before(rnn, pseudo) +
           (id < count ? id * hidden * input : count * hidden * input + (id - count) * hidden * state(rnn));
}

static bool has_bias(const rnn_descriptor *rnn, uint64_t id)
{
    if (id >= 2 * gates(rnn)) return false;
    return rnn->bias == DOUBLE_BIAS || rnn->bias == (id < gates(rnn) ? INPUT_BIAS : RECURRENT_BIAS);
}

TAKE(int, cudnnGetRNNWeightParams, void *handle, const rnn_descriptor *rnn, int32_t pseudo, size_t bytes,
     const void *weights, int32_t id, tensor_descriptor *matrix, void **ret_matrix, tensor_descriptor *bias,
     void **ret_bias)
{
    if (!rnn || rnn->known != KNOWN || pseudo < 0 || (uint64_t)pseudo >= pseudo_count(rnn) || id < 0)
        return BAD_PARAMETER;
    uint64_t const number = (uint64_t)id, element = type_bytes(rnn->type);
    uint64_t const last = 2 * gates(rnn) + is_projected(rnn);
    uint64_t columns;
    uint64_t const at = matrix_at(rnn, (uint64_t)pseudo, number, &columns);
    bool const projects = number == 2 * gates(rnn);
    if (number >= last) return BAD_PARAMETER;
    tell(matrix, rnn, projects ? state(rnn) : (uint64_t)rnn->hidden, columns);
    if (ret_matrix) *ret_matrix = (char *)(uintptr_t)weights + at * element;

    uint64_t const first = matrices_before(rnn, pseudo_count(rnn)) + (uint64_t)pseudo * biases_of(rnn);
    uint64_t const place = rnn->bias == DOUBLE_BIAS ? number : number % gates(rnn);
    bool const there = has_bias(rnn, number);
    if (bias) *bias = (tensor_descriptor){0};
    if (there) tell(bias, rnn, (uint64_t)rnn->hidden, 1);
    if (ret_bias)
        *ret_bias =
            there ? (char *)(uintptr_t)weights + (first + place * (uint64_t)rnn->hidden) * element : NULL;
    return 0;
}

/* Only those that the function above has filled are known. */
TAKE(int, cudnnGetTensorNdDescriptor, const tensor_descriptor *descriptor, int wanted, int *ret_type,
     int *ret_count, int *ret_sizes, int *ret_strides)
{
    if (!descriptor || descriptor->known != KNOWN || wanted < 3 || !ret_type || !ret_count || !ret_sizes ||
        !ret_strides)
        return NOT_SUPPORTED;
    int const sizes[3] = {1, descriptor->rows, descriptor->columns};
    int const strides[3] = {descriptor->rows * descriptor->columns, descriptor->columns, 1};
    *ret_type = descriptor->type;
    *ret_count = 3;
    memcpy(ret_sizes, sizes, sizeof sizes);
    memcpy(ret_strides, strides, sizeof strides);
    return 0;
}

TAKE(int, cudnnGetRNNTempSpaceSizes, void *handle, void *rnn, int mode, void *input, size_t *ret_work,
     size_t *ret_reserve)
{
    if (ret_work) *ret_work = 0;
    if (ret_reserve) *ret_reserve = 0;
    return 0;
}
