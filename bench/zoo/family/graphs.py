"""graphs.py - clouds of points, and graphs as matrices or as lists of edges."""

import torch
from torch import nn
from torch.nn import functional as F

from .pieces import Network, conv_unit, tokens

# ---- Points ----


def point_unit(c_in, c_out):
    return nn.Conv1d(c_in, c_out, 1), nn.BatchNorm1d(c_out), nn.ReLU()


def linear_unit(c_in, c_out):
    return nn.Linear(c_in, c_out), nn.BatchNorm1d(c_out), nn.ReLU()


class Transform(nn.Module):
    """A matrix (N, size, size) for points (N, size, P), near the identity."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.convs = nn.Sequential(*point_unit(size, 64), *point_unit(64, 128), *point_unit(128, 1024))
        self.head = nn.Sequential(*linear_unit(1024, 512), *linear_unit(512, 256), nn.Linear(256, size * size))
        self.register_buffer("identity", torch.eye(size).flatten()[None])

    def forward(self, x):
        y = self.head(torch.max(self.convs(x), 2)[0]) * 0.1 + self.identity
        return y.view(-1, self.size, self.size)


class PointNet(nn.Module):
    """Points (N, 3, P) to log probabilities (N, 40)."""

    def __init__(self):
        super().__init__()
        self.turn3, self.turn64 = Transform(3), Transform(64)
        self.first = nn.Sequential(*point_unit(3, 64))
        self.convs = nn.Sequential(*point_unit(64, 128), *point_unit(128, 1024)[:-1])
        self.head = nn.Sequential(*linear_unit(1024, 512), *linear_unit(512, 256), nn.Linear(256, 40))

    def forward(self, x):
        x = self.first(torch.bmm(x.transpose(2, 1), self.turn3(x)).transpose(2, 1))
        x = torch.bmm(x.transpose(2, 1), self.turn64(x)).transpose(2, 1)
        return self.head(torch.max(self.convs(x), 2)[0]).log_softmax(1)


def pointnet():
    axes = {"points": {0: "batch"}, "logp": {0: "batch"}}
    return Network(PointNet(), {"points": torch.rand(1, 3, 1024) * 2 - 1}, ["logp"], 13, axes)


def leaky():
    return nn.LeakyReLU(0.2)


class Dgcnn(nn.Module):
    """512 points (1, 3, 512) to logits (1, 40): convolutions over each point's nearest ones, which are found
    anew among the features of every layer."""

    points, neighbours = 512, 20

    def __init__(self):
        super().__init__()
        sizes = (3, 64), (64, 64), (64, 128), (128, 256)
        self.convs = nn.ModuleList(conv_unit(2 * c_in, c_out, 1, act=leaky) for c_in, c_out in sizes)
        self.join = nn.Sequential(nn.Conv1d(512, 1024, 1, bias=False), nn.BatchNorm1d(1024), leaky())
        self.head = nn.Sequential(
            nn.Linear(2048, 512, False), nn.BatchNorm1d(512), leaky(),
            nn.Linear(512, 256), nn.BatchNorm1d(256), leaky(), nn.Linear(256, 40),
        )

    def edges(self, x):
        """What differs between each point and its nearest, and the point itself (1, 2C, points, neighbours)."""
        inner = -2 * torch.matmul(x.transpose(2, 1), x)
        squares = (x**2).sum(1, keepdim=True)
        nearest = (-squares - inner - squares.transpose(2, 1)).topk(self.neighbours, -1)[1].view(-1)
        c = x.shape[1]
        x = x.transpose(2, 1).contiguous()
        near = x.view(self.points, c)[nearest].view(1, self.points, self.neighbours, c)
        x = x.view(1, self.points, 1, c).repeat(1, 1, self.neighbours, 1)
        return torch.cat((near - x, x), 3).permute(0, 3, 1, 2).contiguous()

    def forward(self, x):
        parts = []
        for conv in self.convs:
            x = conv(self.edges(x)).max(-1)[0]
            parts.append(x)
        x = self.join(torch.cat(parts, 1))
        pools = F.adaptive_max_pool1d(x, 1).view(1, -1), F.adaptive_avg_pool1d(x, 1).view(1, -1)
        return self.head(torch.cat(pools, 1))


def dgcnn():
    return Network(Dgcnn(), {"points": torch.rand(1, 3, Dgcnn.points) * 2 - 1}, ["logits"])


# ---- Graphs ----


class DenseGcn(nn.Module):
    """Features (nodes, 512) and a matrix of weights between nodes to log probabilities (nodes, 7)."""

    def __init__(self):
        super().__init__()
        sizes = (512, 128), (128, 128), (128, 7)
        self.layers = nn.ModuleList(nn.Linear(c_in, c_out, False) for c_in, c_out in sizes)
        self.biases = nn.ParameterList(nn.Parameter(torch.randn(c_out) * 0.1) for _, c_out in sizes)

    def forward(self, x, adjacent):
        for i, (layer, bias) in enumerate(zip(self.layers, self.biases)):
            x = torch.matmul(adjacent, layer(x)) + bias
            if i < 2:
                x = F.relu(x)
        return x.log_softmax(1)


def gcn_dense(nodes=1000):
    adjacent = (torch.rand(nodes, nodes) < 0.004).float()
    adjacent = ((adjacent + adjacent.t() + torch.eye(nodes)) > 0).float()
    share = adjacent.sum(1).rsqrt()
    model = DenseGcn()
    inputs = {"x": torch.randn(nodes, 512), "adj": adjacent * share[:, None] * share[None]}
    axes = {"x": {0: "nodes"}, "adj": {0: "nodes", 1: "nodes"}, "logp": {0: "nodes"}}
    return Network(model, inputs, ["logp"], 16, axes)


def scatter_sum(count, width, places, rows):
    """The sums (count, width) of the rows that have the same place."""
    return torch.zeros(count, width).scatter_add(0, places[:, None].expand(-1, width), rows)


class GraphAttention(nn.Module):
    def __init__(self, c_in, heads, size):
        super().__init__()
        self.heads, self.size, width = heads, size, heads * size
        self.linear = nn.Linear(c_in, width, False)
        self.source = nn.Parameter(torch.randn(1, heads, size) * 0.3)
        self.target = nn.Parameter(torch.randn(1, heads, size) * 0.3)
        self.bias = nn.Parameter(torch.randn(width) * 0.1)

    def forward(self, x, source, target):
        n, width = x.shape[0], self.heads * self.size
        x = self.linear(x).view(n, self.heads, self.size)
        scores = (x * self.source).sum(-1).index_select(0, source) + (x * self.target).sum(-1).index_select(0, target)
        scores = F.leaky_relu(scores, 0.2)
        scores = torch.exp(scores - scores.max())
        sums = scatter_sum(n, self.heads, target, scores)
        weights = scores / (sums.index_select(0, target) + 1e-16)
        sent = (x.index_select(0, source) * weights.unsqueeze(-1)).view(-1, width)
        return scatter_sum(n, width, target, sent) + self.bias


class Gat(nn.Module):
    """Features (nodes, 512) and edges (2, count) to log probabilities (nodes, 7)."""

    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = GraphAttention(512, 8, 8), GraphAttention(64, 8, 8)
        self.layer3 = GraphAttention(64, 1, 7)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        x = F.elu(self.layer1(x, source, target))
        x = F.elu(self.layer2(x, source, target))
        return self.layer3(x, source, target).log_softmax(1)


def gat_scatter(nodes=1000):
    edges = torch.cat([tokens(nodes, 2, 5000), torch.arange(nodes)[None].expand(2, -1)], 1)
    return Network(Gat(), {"x": torch.randn(nodes, 512), "edge_index": edges}, ["logp"])


class LightGcn(nn.Module):
    """Edges between users and items with their weights, and some users, to the best items of each with
    their scores (count, 20)."""

    users, items, width = 1000, 2000, 64

    def __init__(self):
        super().__init__()
        self.user_vectors = nn.Parameter(torch.randn(self.users, self.width))
        self.item_vectors = nn.Parameter(torch.randn(self.items, self.width))

    def forward(self, source, target, weights, asked):
        x = torch.cat([self.user_vectors, self.item_vectors])
        total = x
        for _ in range(3):
            sent = x.index_select(0, source) * weights[:, None]
            x = torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, self.width), sent)
            total = total + x
        users, items = torch.split(total / 4, [self.users, self.items])
        scores, best = torch.topk(torch.matmul(users[asked], items.t()), 20, dim=1)
        return scores, best


def lightgcn(edges=20000):
    users, items = tokens(LightGcn.users, edges), tokens(LightGcn.items, edges) + LightGcn.users
    source, target = torch.cat([users, items]), torch.cat([items, users])
    degrees = torch.bincount(target, minlength=LightGcn.users + LightGcn.items).clamp(min=1).float()
    model = LightGcn()
    inputs = {
        "src": source, "dst": target, "weight": (degrees[source] * degrees[target]).rsqrt(),
        "users": tokens(LightGcn.users, 64),
    }
    return Network(model, inputs, ["scores", "items"])


NETWORKS = (pointnet, dgcnn, gcn_dense, gat_scatter, lightgcn)
