//! Tells the linker where libsinter is: SINTER_LIB_DIR, or the system's folders.
fn main() {
    if let Ok(folder) = std::env::var("SINTER_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=sinter");
    println!("cargo:rerun-if-env-changed=SINTER_LIB_DIR");
}
