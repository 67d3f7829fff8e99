// Package sinter runs ONNX models through libsinter's C interface.
package sinter

/*
#cgo pkg-config: sinter
#include <sinter.h>
#include <stdlib.h>
#include <string.h>

// One run with float inputs in Go's memory: bindings are built on this side, because Go must not
// hand C a pointer to memory that holds Go pointers.
static sn_status run_floats(sn_session *session, const char *in_name, const float *data,
                            size_t count, const int64_t *dims, int rank, const char *out_name,
                            sn_value **result, sn_error *err) {
    sn_binding in = {in_name, NULL}, out = {out_name, NULL};
    sn_status status = sn_tensor_wrap(SN_FLOAT32, rank, dims, (void *)data, count * sizeof *data,
                                      &in.value, err);
    if (status == SN_OK) status = sn_session_run(session, NULL, &in, 1, &out, 1, err);
    sn_value_destroy(in.value);
    if (status == SN_OK) *result = out.value;
    return status;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Session is a model made ready to run. Several goroutines may run it at once.
type Session struct {
	handle *C.sn_session
}

// Tensor is a float32 tensor: its elements in row-major order, and its shape.
type Tensor struct {
	Data []float32
	Dims []int64
}

func failure(err *C.sn_error) error {
	return errors.New(C.GoString(&err.message[0]))
}

// Open loads a model. Close releases it.
func Open(path string) (*Session, error) {
	var err C.sn_error
	var model *C.sn_model
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.sn_model_load(name, nil, &model, &err) != C.SN_OK {
		return nil, failure(&err)
	}
	defer C.sn_model_destroy(model)
	s := &Session{}
	if C.sn_session_create(model, nil, &s.handle, &err) != C.SN_OK {
		return nil, failure(&err)
	}
	return s, nil
}

// Close releases the session, after its last run.
func (s *Session) Close() {
	C.sn_session_destroy(s.handle)
	s.handle = nil
}

// Run gives one input and returns one output, both by name.
func (s *Session) Run(input string, x Tensor, output string) (Tensor, error) {
	count := int64(1)
	for _, d := range x.Dims {
		count *= d
	}
	if s.handle == nil || count != int64(len(x.Data)) || count == 0 || len(x.Dims) == 0 {
		return Tensor{}, fmt.Errorf("%d elements do not fill the shape %v", len(x.Data), x.Dims)
	}
	in, out := C.CString(input), C.CString(output)
	defer C.free(unsafe.Pointer(in))
	defer C.free(unsafe.Pointer(out))
	var err C.sn_error
	var value *C.sn_value
	status := C.run_floats(s.handle, in, (*C.float)(&x.Data[0]), C.size_t(count),
		(*C.int64_t)(&x.Dims[0]), C.int(len(x.Dims)), out, &value, &err)
	runtime.KeepAlive(x)
	if status != C.SN_OK {
		return Tensor{}, failure(&err)
	}
	defer C.sn_value_destroy(value)
	if C.sn_tensor_dtype(value) != C.SN_FLOAT32 {
		return Tensor{}, fmt.Errorf("output %q is not float32", output)
	}
	rank := int(C.sn_tensor_rank(value))
	result := Tensor{
		Data: make([]float32, int(C.sn_tensor_count(value))),
		Dims: make([]int64, rank),
	}
	if rank > 0 {
		dims := unsafe.Slice((*int64)(C.sn_tensor_dims(value)), rank)
		copy(result.Dims, dims)
	}
	if len(result.Data) > 0 {
		data := (*float32)(C.sn_tensor_const_data(value))
		copy(result.Data, unsafe.Slice(data, len(result.Data)))
	}
	return result, nil
}
