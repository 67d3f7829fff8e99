"""vision.py - image networks: torchvision's, smaller ones of the same structure, and our own."""

from functools import partial

import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torchvision import models as tv


def settle(model, *shape):
    """Gives every batch normalisation statistics that fit, and scales that are not 1; parameters that
    start as constants get values, so that no branch of the network is without effect."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.1)
            m.momentum = None
        elif isinstance(m, nn.LayerNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
    for name, p in model.named_parameters():
        if name.endswith("layer_scale"):
            nn.init.uniform_(p, 0.1, 0.3)
        elif float(p.detach().abs().max()) == 0:
            nn.init.normal_(p, 0, 0.02)
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, *shape))
    return model.eval()


# ---- Classifiers: the full network, and one of the same structure that tests can afford ----


def resnet(block, depth):
    return lambda small: (
        tv.ResNet(block, [2, 1, 1, 1], num_classes=40, width_per_group=32 if block is tv.resnet.Bottleneck else 64)
        if small
        else tv.ResNet(block, depth)
    )


def vgg16(small):
    if not small:
        return tv.vgg16(weights=None)
    plan = [16, 16, "M", 32, 32, "M", 48, 48, "M", 64, 64, "M", 64, 64, "M"]
    return SmallVgg(tv.vgg.make_layers(plan))


class SmallVgg(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features, self.avgpool = features, nn.AdaptiveAvgPool2d((2, 2))
        self.classifier = nn.Sequential(
            nn.Linear(256, 96), nn.ReLU(), nn.Dropout(), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(), nn.Linear(96, 40)
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def densenet121(small):
    return tv.DenseNet(8, (2, 3, 2, 2), 16, num_classes=40) if small else tv.densenet121(weights=None)


class SmallInception(nn.Module):
    """One of each kind of block, with the stem."""

    def __init__(self):
        super().__init__()
        from torchvision.models import inception as i

        self.body = nn.Sequential(
            i.BasicConv2d(3, 16, kernel_size=3, stride=2), i.BasicConv2d(16, 24, kernel_size=3, padding=1),
            nn.MaxPool2d(3, 2), i.InceptionA(24, 8), i.InceptionB(232), i.InceptionC(712, 32), i.InceptionD(768),
        )
        self.reduce = nn.Conv2d(1280, 64, 1)
        self.last, self.out = i.InceptionE(64), nn.Linear(2048, 40)

    def forward(self, x):
        y = self.last(self.reduce(self.body(x)))
        return self.out(torch.flatten(F.adaptive_avg_pool2d(y, 1), 1))


def inception_v3(small):
    return SmallInception() if small else tv.inception_v3(weights=None, aux_logits=False, init_weights=False)


def efficientnet_b0(small):
    if not small:
        return tv.efficientnet_b0(weights=None)
    setting, last = tv.efficientnet._efficientnet_conf("efficientnet_b0", width_mult=0.25, depth_mult=0.5)
    return tv.EfficientNet(setting, 0.2, num_classes=40, last_channel=last)


def convnext_tiny(small):
    if not small:
        return tv.convnext_tiny(weights=None)
    block = tv.convnext.CNBlockConfig
    return tv.ConvNeXt([block(24, 48, 2), block(48, 64, 1), block(64, 80, 1), block(80, None, 1)], num_classes=40)


def swin_t(small):
    if not small:
        return tv.swin_t(weights=None)
    return tv.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [7, 7], num_classes=40)


def vit_b_16(small):
    model = tv.VisionTransformer(64, 16, 2, 4, 48, 96, num_classes=40) if small else tv.vit_b_16(weights=None)
    for layer in model.encoder.layers:
        layer.self_attention.forward = partial(plain_attention, layer.self_attention)
    return model


def plain_attention(m, query, key, value, need_weights=False):
    """nn.MultiheadAttention without the fused form that has no ONNX operator."""
    n, t, c = query.shape
    heads, size = m.num_heads, c // m.num_heads
    parts = F.linear(query, m.in_proj_weight, m.in_proj_bias).reshape(n, t, 3, heads, size).permute(2, 0, 3, 1, 4)
    q, k, v = parts[0], parts[1], parts[2]
    scores = (q * size**-0.5) @ k.transpose(-2, -1)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
    return m.out_proj(y), None


# ---- Segmentation and detection from torchvision ----


class Segmenter(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def deeplabv3_mobilenet(small):
    if not small:
        return Segmenter(tv.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None))
    backbone = tv.mobilenet_v3_large(weights=None, dilated=True, width_mult=0.25)
    return Segmenter(tv.segmentation.deeplabv3._deeplabv3_mobilenetv3(backbone, 5, None))


class Boxes(nn.Module):
    """A torchvision detector of one picture: (3, H, W) to boxes, scores and labels."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        found = self.model([x])[0]
        return found["boxes"], found["scores"], found["labels"]


def settle_detector(model, side):
    """Statistics by pictures through the backbone and through the heads, which get the features."""
    settle(model.backbone, 3, side, side)
    features = model.backbone(torch.randn(4, 3, side, side))
    if hasattr(model, "head"):
        head = model.head
        for m in head.modules():
            if isinstance(m, nn.BatchNorm2d):
                nn.init.uniform_(m.weight, 0.5, 1.5)
                nn.init.normal_(m.bias, 0, 0.1)
                m.momentum = None
            if isinstance(m, nn.Conv2d):
                nn.init.normal_(m.weight, 0, 1.5 / (m.weight[0].numel()) ** 0.5)
        head.train()
        with torch.no_grad():
            head(list(features.values()))
    return Boxes(model).eval()


def ssdlite320(small):
    model = tv.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5 if small else 91, topk_candidates=40 if small else 300,
        detections_per_img=60 if small else 300, width_mult=0.25 if small else 1.0,
    )
    return settle_detector(model, 320)


def fasterrcnn_mobilenet(small):
    detection = tv.detection
    if not small:
        model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=91)
    else:
        body = tv.mobilenet_v3_large(weights=None, width_mult=0.25)
        backbone = detection.backbone_utils._mobilenet_extractor(body, True, 6)
        anchors = detection.anchor_utils.AnchorGenerator(((32, 64, 128),) * 3, ((0.5, 1.0, 2.0),) * 3)
        model = detection.FasterRCNN(
            backbone, None, rpn_anchor_generator=anchors, min_size=160, max_size=240, rpn_pre_nms_top_n_test=60, rpn_post_nms_top_n_test=40,
            box_head=detection.faster_rcnn.TwoMLPHead(256 * 49, 64),
            box_predictor=detection.faster_rcnn.FastRCNNPredictor(64, 5),
        )
    for name, p in list(model.rpn.named_parameters()) + list(model.roi_heads.named_parameters()):
        if p.dim() > 1:  # small weights as for training would give every box the same score
            nn.init.normal_(p, 0, 2.0 / p[0].numel() ** 0.5)
    nn.init.normal_(model.roi_heads.box_predictor.bbox_pred.weight, 0, 0.02)
    if small:  # offsets about 1: times an anchor's size, larger ones turn rounding into parts of a pixel
        nn.init.normal_(model.rpn.head.bbox_pred.weight, 0, 0.004)
    return settle_detector(model, 160 if small else 320)


# ---- Our own: a detector of the YOLOv8 kind, U-Net, super-resolution ----


class ConvUnit(nn.Sequential):
    def __init__(self, c_in, c_out, kernel=3, stride=1):
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(c_out), nn.SiLU()
        )


class SplitBlock(nn.Module):
    """Half of the channels go through `depth` units of two convolutions; all stages are joined again."""

    def __init__(self, c_in, c_out, depth, add):
        super().__init__()
        half = c_out // 2
        self.add = add
        self.first = ConvUnit(c_in, c_out, 1)
        self.units = nn.ModuleList(nn.Sequential(ConvUnit(half, half), ConvUnit(half, half)) for _ in range(depth))
        self.last = ConvUnit((2 + depth) * half, c_out, 1)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for unit in self.units:
            y = unit(parts[-1])
            parts.append(parts[-1] + y if self.add else y)
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """The same pooling three times over, joined."""

    def __init__(self, c):
        super().__init__()
        self.first, self.last = ConvUnit(c, c // 2, 1), ConvUnit(c * 2, c, 1)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A detector of the YOLOv8 kind with three scales; boxes come as distances to four sides, each the
    mean of a distribution over `bins` places. (N, 3, H, W) to (N, 4 + classes, boxes)."""

    bins, strides = 16, (8, 16, 32)

    def __init__(self, c=16, depths=(1, 2, 2, 1), classes=80):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(ConvUnit(3, c, 3, 2), ConvUnit(c, 2 * c, 3, 2), SplitBlock(2 * c, 2 * c, depths[0], True))
        self.stage3 = nn.Sequential(ConvUnit(2 * c, 4 * c, 3, 2), SplitBlock(4 * c, 4 * c, depths[1], True))
        self.stage4 = nn.Sequential(ConvUnit(4 * c, 8 * c, 3, 2), SplitBlock(8 * c, 8 * c, depths[2], True))
        self.stage5 = nn.Sequential(ConvUnit(8 * c, 16 * c, 3, 2), SplitBlock(16 * c, 16 * c, depths[3], True), Pyramid(16 * c))
        self.up4, self.up3 = SplitBlock(24 * c, 8 * c, 1, False), SplitBlock(12 * c, 4 * c, 1, False)
        self.down3, self.down4 = ConvUnit(4 * c, 4 * c, 3, 2), ConvUnit(8 * c, 8 * c, 3, 2)
        self.mid4, self.mid5 = SplitBlock(12 * c, 8 * c, 1, False), SplitBlock(24 * c, 16 * c, 1, False)
        wide, sides = max(4 * c, classes), 4 * self.bins
        self.boxes = nn.ModuleList(self.head(k * c, max(c, sides), sides) for k in (4, 8, 16))
        self.scores = nn.ModuleList(self.head(k * c, wide, classes) for k in (4, 8, 16))
        self.mean = nn.Conv2d(self.bins, 1, 1, bias=False)
        self.mean.weight.data = torch.arange(self.bins, dtype=torch.float).view(1, self.bins, 1, 1)

    @staticmethod
    def head(c, middle, out):
        return nn.Sequential(ConvUnit(c, middle), ConvUnit(middle, middle), nn.Conv2d(middle, out, 1))

    def anchors(self, levels):
        points, strides = [], []
        for y, stride in zip(levels, self.strides):
            h, w = y.shape[2:]
            rows, columns = torch.arange(h, dtype=y.dtype) + 0.5, torch.arange(w, dtype=y.dtype) + 0.5
            grid = torch.stack([columns.view(1, -1).expand(h, w), rows.view(-1, 1).expand(h, w)], 0)
            points.append(grid.reshape(2, -1))
            strides.append(torch.full((1, h * w), float(stride)))
        return torch.cat(points, 1).unsqueeze(0), torch.cat(strides, 1)

    def forward(self, x):
        a = self.stage3(self.stem(x))
        b = self.stage4(a)
        c = self.stage5(b)
        p4 = self.up4(torch.cat([F.interpolate(c, scale_factor=2.0, mode="nearest"), b], 1))
        p3 = self.up3(torch.cat([F.interpolate(p4, scale_factor=2.0, mode="nearest"), a], 1))
        p4 = self.mid4(torch.cat([self.down3(p3), p4], 1))
        p5 = self.mid5(torch.cat([self.down4(p4), c], 1))
        n, levels = x.shape[0], [p3, p4, p5]
        joined = [torch.cat([f(y), g(y)], 1) for f, g, y in zip(self.boxes, self.scores, levels)]
        flat = torch.cat([y.view(n, 4 * self.bins + self.classes, -1) for y in joined], 2)
        box, score = flat.split((4 * self.bins, self.classes), 1)
        places = flat.shape[2]
        sides = self.mean(box.view(n, 4, self.bins, places).transpose(2, 1).softmax(1)).view(n, 4, places)
        points, strides = self.anchors(levels)
        near, far = points - sides[:, :2], points + sides[:, 2:]
        return torch.cat([torch.cat([(near + far) / 2, far - near], 1) * strides, score.sigmoid()], 1)


def yolov8n(small):
    return Detector(8, (1, 1, 1, 1), 12) if small else Detector()


class DoubleConv(nn.Sequential):
    def __init__(self, c_in, c_out):
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(),
            nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(),
        )


class UNet(nn.Module):
    """Four times down by pooling and up by transposed convolution. (N, 3, H, W) to (N, 2, H, W)."""

    def __init__(self, c=32, levels=4):
        super().__init__()
        self.first = DoubleConv(3, c)
        self.down = nn.ModuleList(DoubleConv(c << i, c << (i + 1)) for i in range(levels))
        self.up = nn.ModuleList(nn.ConvTranspose2d(c << (i + 1), c << i, 2, 2) for i in reversed(range(levels)))
        self.join = nn.ModuleList(DoubleConv(c << (i + 1), c << i) for i in reversed(range(levels)))
        self.out = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        stages = [self.first(x)]
        for block in self.down:
            stages.append(block(F.max_pool2d(stages[-1], 2)))
        y = stages.pop()
        for up, join in zip(self.up, self.join):
            y = join(torch.cat([stages.pop(), up(y)], 1))
        return self.out(y)


def unet(small):
    return UNet(8, 2) if small else UNet()


def super_res(small):
    """Sub-pixel super-resolution by three of a picture's brightness. (N, 1, H, W) to (N, 1, 3H, 3W)."""
    c = 16 if small else 64
    return nn.Sequential(
        nn.Conv2d(1, c, 5, padding=2), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(),
        nn.Conv2d(c, c // 2, 3, padding=1), nn.ReLU(), nn.Conv2d(c // 2, 9, 3, padding=1), nn.PixelShuffle(3),
    )


# ---- What the catalogue takes: name to a function of `small` that gives a settled network ----


def settled(make, side, small_side, channels=3):
    def build(small):
        s = small_side if small else min(side, 128 if side < 299 else 160)
        return settle(make(small), channels, s, s)

    return build


def scaled(name):
    return lambda small: getattr(tv, name)(weights=None, **({"width_mult": 0.25, "num_classes": 40} if small else {}))


def shufflenet_v2(small):
    return tv.shufflenet_v2_x0_5(weights=None, num_classes=40) if small else tv.shufflenet_v2_x1_0(weights=None)


def squeezenet1_1(small):
    return tv.squeezenet1_1(weights=None, num_classes=40 if small else 1000)


# name: (maker, side of a full picture, side of a small one, channels)
PICTURE_NETWORKS = {
    "resnet18": (resnet(tv.resnet.BasicBlock, [2, 2, 2, 2]), 224, 64, 3),
    "resnet50": (resnet(tv.resnet.Bottleneck, [3, 4, 6, 3]), 224, 64, 3),
    "vgg16": (vgg16, 224, 64, 3),
    "densenet121": (densenet121, 224, 64, 3),
    "inception_v3": (inception_v3, 299, 75, 3),
    "mobilenet_v2": (scaled("mobilenet_v2"), 224, 64, 3),
    "mobilenet_v3_large": (scaled("mobilenet_v3_large"), 224, 64, 3),
    "efficientnet_b0": (efficientnet_b0, 224, 64, 3),
    "shufflenet_v2": (shufflenet_v2, 224, 64, 3),
    "squeezenet1_1": (squeezenet1_1, 224, 64, 3),
    "convnext_tiny": (convnext_tiny, 224, 64, 3),
    "swin_t": (swin_t, 224, 56, 3),
    "yolov8n": (yolov8n, 640, 96, 3),
    "unet": (unet, 256, 48, 3),
    "super_res": (super_res, 224, 40, 1),
    "deeplabv3_mobilenet": (deeplabv3_mobilenet, 512, 96, 3),
}
PICTURE_NETWORKS = {k: (settled(m, full, small, c), full, small, c) for k, (m, full, small, c) in PICTURE_NETWORKS.items()}
PICTURE_NETWORKS["vit_b_16"] = (
    lambda small: settle(vit_b_16(small), 3, 64 if small else 224, 64 if small else 224), 224, 64, 3
)
DETECTORS = {"ssdlite320": (ssdlite320, 320, 320), "fasterrcnn_mobilenet": (fasterrcnn_mobilenet, 320, 160)}
