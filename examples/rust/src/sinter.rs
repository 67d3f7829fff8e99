//! Runs ONNX models through libsinter's C interface: the part of sinter.h that this program needs,
//! and safe types over it.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

mod c {
    use super::*;

    pub const FLOAT32: c_int = 1;

    #[repr(C)]
    pub struct Error {
        pub status: c_int,
        pub message: [c_char; 512],
    }

    #[repr(C)]
    pub struct Binding {
        pub name: *const c_char,
        pub value: *mut c_void,
    }

    extern "C" {
        pub fn sn_model_load(
            path: *const c_char,
            options: *const c_void,
            out: *mut *mut c_void,
            err: *mut Error,
        ) -> c_int;
        pub fn sn_model_destroy(model: *mut c_void);
        pub fn sn_session_create(
            model: *const c_void,
            options: *const c_void,
            out: *mut *mut c_void,
            err: *mut Error,
        ) -> c_int;
        pub fn sn_session_destroy(session: *mut c_void);
        pub fn sn_session_run(
            session: *mut c_void,
            options: *const c_void,
            inputs: *const Binding,
            input_count: usize,
            outputs: *mut Binding,
            output_count: usize,
            err: *mut Error,
        ) -> c_int;
        pub fn sn_tensor_wrap(
            dtype: c_int,
            rank: c_int,
            dims: *const i64,
            data: *mut c_void,
            bytes: usize,
            out: *mut *mut c_void,
            err: *mut Error,
        ) -> c_int;
        pub fn sn_tensor_dtype(value: *const c_void) -> c_int;
        pub fn sn_tensor_rank(value: *const c_void) -> c_int;
        pub fn sn_tensor_dims(value: *const c_void) -> *const i64;
        pub fn sn_tensor_count(value: *const c_void) -> usize;
        pub fn sn_tensor_const_data(value: *const c_void) -> *const c_void;
        pub fn sn_value_destroy(value: *mut c_void);
    }
}

/// What the library says of a failure.
#[derive(Debug)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn check(call: impl FnOnce(*mut c::Error) -> c_int) -> Result<(), Error> {
    let mut err = c::Error { status: 0, message: [0; 512] };
    if call(&mut err) == 0 {
        return Ok(());
    }
    // SAFETY: a function that failed has written a text that ends with NUL.
    let text = unsafe { CStr::from_ptr(err.message.as_ptr()) };
    Err(Error(text.to_string_lossy().into_owned()))
}

fn name(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error(format!("{text:?} holds a NUL")))
}

/// A value of the library's, destroyed with it.
struct Value(*mut c_void);

impl Drop for Value {
    fn drop(&mut self) {
        unsafe { c::sn_value_destroy(self.0) }
    }
}

/// A float32 tensor: its elements in row-major order, and its shape.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub data: Vec<f32>,
    pub dims: Vec<i64>,
}

/// A model made ready to run.
pub struct Session(*mut c_void);

// SAFETY: sinter.h allows any number of threads to use one session.
unsafe impl Send for Session {}
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { c::sn_session_destroy(self.0) }
    }
}

impl Session {
    pub fn open(path: &str) -> Result<Session, Error> {
        let path = name(path)?;
        let (mut model, mut session) = (ptr::null_mut(), ptr::null_mut());
        check(|err| unsafe { c::sn_model_load(path.as_ptr(), ptr::null(), &mut model, err) })?;
        let made =
            check(|err| unsafe { c::sn_session_create(model, ptr::null(), &mut session, err) });
        unsafe { c::sn_model_destroy(model) }
        made.map(|()| Session(session))
    }

    /// Gives one input and returns one output, both by name.
    pub fn run(&self, input: &str, x: &Tensor, output: &str) -> Result<Tensor, Error> {
        let (input, output) = (name(input)?, name(output)?);
        let mut value = ptr::null_mut();
        // SAFETY: inputs are only read, and `x` outlives the value made over it.
        check(|err| unsafe {
            c::sn_tensor_wrap(
                c::FLOAT32,
                x.dims.len() as c_int,
                x.dims.as_ptr(),
                x.data.as_ptr() as *mut c_void,
                std::mem::size_of_val(x.data.as_slice()),
                &mut value,
                err,
            )
        })?;
        let given = Value(value);
        let bound = c::Binding { name: input.as_ptr(), value: given.0 };
        let mut wanted = c::Binding { name: output.as_ptr(), value: ptr::null_mut() };
        check(|err| unsafe {
            c::sn_session_run(self.0, ptr::null(), &bound, 1, &mut wanted, 1, err)
        })?;
        read(&Value(wanted.value))
    }
}

fn read(value: &Value) -> Result<Tensor, Error> {
    // SAFETY: the pointers are the value's own, with as many elements as it says.
    unsafe {
        if c::sn_tensor_dtype(value.0) != c::FLOAT32 {
            return Err(Error("the output is not float32".into()));
        }
        let (rank, count) = (c::sn_tensor_rank(value.0) as usize, c::sn_tensor_count(value.0));
        let dims = match rank {
            0 => Vec::new(),
            _ => std::slice::from_raw_parts(c::sn_tensor_dims(value.0), rank).to_vec(),
        };
        let data = match count {
            0 => Vec::new(),
            _ => std::slice::from_raw_parts(c::sn_tensor_const_data(value.0) as *const f32, count)
                .to_vec(),
        };
        Ok(Tensor { data, dims })
    }
}
