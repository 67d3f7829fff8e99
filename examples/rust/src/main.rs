//! Recognises a digit from Rust, from several threads at once.

mod sinter;

use sinter::{Error, Session, Tensor};

const DRAWING: &str = concat!(
    "  ####  ", "     ## ", "     ## ", "   ###  ", "     ## ", "     ## ", " #   ## ", "  ####  "
);

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "demo/digits.onnx".into());
    if let Err(e) = classify(&path) {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

fn classify(path: &str) -> Result<(), Error> {
    let session = Session::open(path)?;
    let data = DRAWING.chars().map(|c| if c == '#' { 1.0 } else { 0.0 }).collect();
    let image = Tensor { data, dims: vec![1, 1, 8, 8] };

    let answers: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| session.run("image", &image, "probabilities")))
            .collect();
        runs.into_iter().map(|r| r.join().expect("a thread does not panic")).collect()
    });
    let mut first = None;
    for answer in answers {
        let answer = answer?;
        first.get_or_insert(answer);
    }
    let first = first.ok_or_else(|| Error("no answer".into()))?;
    let best = (0..first.data.len())
        .max_by(|&a, &b| first.data[a].total_cmp(&first.data[b]))
        .ok_or_else(|| Error("an empty answer".into()))?;
    println!("this is a {best} ({:.1} %)", 100.0 * first.data[best]);

    let wrong = Tensor { data: vec![0.0; 4], dims: vec![1, 1, 2, 2] };
    if let Err(e) = session.run("image", &wrong, "probabilities") {
        println!("a wrong shape is refused: {e}");
    }
    Ok(())
}
