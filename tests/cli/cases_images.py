"""cases_images.py - pictures as inputs."""
from harness import *

try:
    from PIL import Image
except ImportError:
    Image = None

DICE = np.random.RandomState(3)


def picture(folder, height, width):
    pixels = DICE.randint(0, 256, (height, width, 3)).astype(np.uint8)
    file = os.path.join(folder, "p.png")
    png(file, pixels)
    return file, pixels


def through(folder, elem_type, shape, file, *args):
    return saved_array(folder, identity(folder, elem_type, shape), "-i", file, *args)


def check_close(got, want, atol, what):
    check(got.shape == want.shape and np.allclose(got, want, atol=atol, rtol=1e-5), what)


@test
def png_layouts(folder):
    file, pixels = picture(folder, 5, 7)
    chw = pixels.transpose(2, 0, 1)[None].astype(np.float32)
    check_close(through(folder, TensorProto.FLOAT, [1, 3, 5, 7], file), chw / 255, 1e-6, "nchw")
    check_close(through(folder, TensorProto.FLOAT, ["n", 3, "h", "w"], file), chw / 255, 1e-6,
                "free dimensions")
    got = through(folder, TensorProto.UINT8, [1, 5, 7, 3], file)
    check(got.dtype == np.uint8 and np.array_equal(got, pixels[None]), "nhwc bytes")
    got = through(folder, TensorProto.UINT8, [5, 7, 3], file, "--color", "bgr")
    check(np.array_equal(got, pixels[:, :, ::-1]), "bgr without a batch")
    gray = pixels @ np.array([0.299, 0.587, 0.114])
    check_close(through(folder, TensorProto.FLOAT, [1, 1, 5, 7], file, "--scale", 1),
                gray[None, None], 1e-3, "gray")
    check_close(through(folder, TensorProto.FLOAT, [5, 7], file, "--scale", 1), gray, 1e-3,
                "a matrix")
    got = through(folder, TensorProto.FLOAT, [1, 3, 5, 7], file, "--mean", "0.5,0.4,0.3", "--std",
                  "0.2,0.3,0.4")
    want = (pixels / 255 - np.array([.5, .4, .3])) / np.array([.2, .3, .4])
    check_close(got, want.transpose(2, 0, 1)[None], 1e-5, "mean and std")
    got = through(folder, TensorProto.FLOAT, ["n", "a", "b", "c"], file, "--layout", "nhwc")
    check_close(got, pixels[None] / 255, 1e-6, "chosen layout")


@test
def resizing(folder):
    file, pixels = picture(folder, 40, 60)
    flat = os.path.join(folder, "flat.png")
    png(flat, np.full((9, 9, 3), 51, np.uint8))
    got = through(folder, TensorProto.FLOAT, [1, 3, 20, 4], flat)
    check_close(got, np.full((1, 3, 20, 4), 0.2), 1e-6, "a flat picture stays flat")
    if Image is None:
        return
    for height, width in [(20, 30), (80, 120), (7, 100), (224, 224)]:
        got = through(folder, TensorProto.FLOAT, [1, height, width, 3], file, "--scale", 1)
        want = np.array(Image.fromarray(pixels).resize((width, height), Image.BILINEAR))
        check_close(got, want[None].astype(np.float32), 1.01, "resize %dx%d" % (height, width))


@test
def jpeg(folder):
    if Image is None:
        return
    smooth = np.add.outer(np.arange(32) * 3, np.arange(48) * 2)[:, :, None] + np.array([0, 9, 50])
    file = os.path.join(folder, "p.jpg")
    Image.fromarray(smooth.astype(np.uint8)).save(file, quality=95)
    want = np.array(Image.open(file).convert("RGB")).astype(np.float32)
    got = through(folder, TensorProto.FLOAT, [1, 32, 48, 3], file, "--scale", 1)
    check_close(got, want[None], 4.0, "jpeg")
    good = content(file)
    path = identity(folder, TensorProto.FLOAT, [1, 3, 8, 8])
    for cut in [0, 3, 20, 200, len(good) // 2]:
        write(file, good[:cut])
        check(sinter("run", path, "-i", file).code in (0, 3), "jpeg cut at %d" % cut)


@test
def picture_errors(folder):
    file, _ = picture(folder, 6, 6)
    for shape, why in [([4], "rank"), ([2, 3, 4, 4], "batch of 1"), ([1, 5, 4, 4], "channels"),
                       ([1, 3, 0, 4], "resize")]:
        check_error(sinter("run", identity(folder, TensorProto.FLOAT, shape), "-i", file), 3, why)
    path = identity(folder, TensorProto.INT8, [1, 3, 4, 4])
    check_error(sinter("run", path, "-i", file), 3, "int8")
    path = identity(folder, TensorProto.FLOAT, [1, 3, 4, 4])
    check_error(sinter("run", path, "-i", file, "--std", "0"), 2, "--std")
    check_error(sinter("run", path, "-i", file, "--mean", "1,2"), 2, "--mean")
    check_error(sinter("run", path, "-i", file, "--color", "pink"), 2, "rgb")
    good = content(file)
    for at in range(0, len(good), 7):
        bad = bytearray(good)
        bad[at] ^= 0x55
        write(file, bad)
        check(sinter("run", path, "-i", file).code in (0, 3), "png changed at %d" % at)
    bad = bytearray(good)
    bad[16:24] = b"\x7f\xff\xff\xff\x7f\xff\xff\xff"
    bad[29:33] = struct.pack(">I", zlib.crc32(bytes(bad[12:29])))
    write(file, bad)
    check_error(sinter("run", path, "-i", file), 3)
